const NOBODY = [""];

/**
 * Sorts items so that each caller's oldest comes first, then each caller's second, and so on. `items` are in order
 * of arrival. An item of several callers counts for each, and takes its earliest place.
 */
export function inFairOrder<T>(
  items: readonly T[],
  callersOf: (item: T) => Iterable<string> | undefined,
): T[] {
  const counts = new Map<string, number>();
  const ranked = items.map((item) => {
    let rank = Infinity;
    for (const caller of callersOf(item) ?? NOBODY) {
      const count = counts.get(caller) ?? 0;
      counts.set(caller, count + 1);
      rank = Math.min(rank, count);
    }
    return { item, rank };
  });
  return ranked.sort((a, b) => a.rank - b.rank).map(({ item }) => item);
}
