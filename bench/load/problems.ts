const MAX_DETAILS = 3;
/** How long a fault may still explain a problem after it has ended. */
const FAULT_EFFECT_MS = 5_000;

export type Problems = ReturnType<typeof createProblems>;

/** Collects the problems of a run, by kind, each with the faults at that time. */
export function createProblems() {
  const byKind = new Map<string, string[]>();
  /** When each fault ends; Infinity while it lasts. */
  const endOfFaults = new Map<string, number>();

  function recentFaults(): string[] {
    const since = Date.now() - FAULT_EFFECT_MS;
    return [...endOfFaults].flatMap(([name, endsAt]) => (endsAt > since ? name : []));
  }

  return {
    faultBegan(name: string): void {
      endOfFaults.set(name, Infinity);
    },
    faultEnded(name: string): void {
      endOfFaults.set(name, Date.now());
    },

    /** Records a problem. `kind` groups problems, `detail` says where one occurred. */
    add(kind: string, detail: string): void {
      const faults = recentFaults().join(", ") || "no fault";
      byKind.set(kind, [...(byKind.get(kind) ?? []), `${detail} (during: ${faults})`]);
    },
    /** Returns a line for each kind, with the number of problems and the first details. */
    lines: () =>
      [...byKind].map(
        ([kind, details]) =>
          `${kind} (${details.length}): ${details.slice(0, MAX_DETAILS).join("; ")}`,
      ),
  };
}
