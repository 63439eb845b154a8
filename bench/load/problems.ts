const MAX_DETAILS = 3;

export type Problems = ReturnType<typeof createProblems>;

/** Collects the problems of a run, by kind. */
export function createProblems() {
  const byKind = new Map<string, string[]>();
  return {
    /** Records a problem. `kind` groups problems, `detail` says where one occurred. */
    add(kind: string, detail: string): void {
      byKind.set(kind, [...(byKind.get(kind) ?? []), detail]);
    },
    /** Returns a line for each kind, with the number of problems and the first details. */
    lines: () =>
      [...byKind].map(
        ([kind, details]) =>
          `${kind} (${details.length}): ${details.slice(0, MAX_DETAILS).join("; ")}`,
      ),
  };
}
