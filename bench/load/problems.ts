const MAX_DETAILS = 3;
/** How long a fault may still explain a problem after it has ended. */
const FAULT_EFFECT_MS = 5_000;

export type Problems = ReturnType<typeof createProblems>;

/** Collects the problems of a run, by kind, each with the faults at that time. */
export function createProblems() {
  const byKind = new Map<string, string[]>();
  /** `to`: Infinity while the fault lasts. */
  const faults: { readonly name: string; readonly from: number; to: number }[] = [];

  const faultsAt = (time: number): string[] =>
    faults.flatMap(({ name, from, to }) =>
      from <= time && time < to + FAULT_EFFECT_MS ? name : [],
    );

  return {
    faultBegan(name: string): void {
      faults.push({ name, from: Date.now(), to: Infinity });
    },
    faultEnded(name: string): void {
      for (const fault of faults)
        if (fault.name === name && fault.to === Infinity) fault.to = Date.now();
    },

    /**
     * Records a problem. `kind` groups problems, `detail` says where one occurred, `at` when, in
     * milliseconds since 1970.
     */
    add(kind: string, detail: string, at = Date.now()): void {
      const names = [...new Set(faultsAt(at))].join(", ") || "no fault";
      byKind.set(kind, [...(byKind.get(kind) ?? []), `${detail} (during: ${names})`]);
    },
    /** Returns a line for each kind, with the number of problems and the first details. */
    lines: () =>
      [...byKind].map(
        ([kind, details]) =>
          `${kind} (${details.length}): ${details.slice(0, MAX_DETAILS).join("; ")}`,
      ),
  };
}
