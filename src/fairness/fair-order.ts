/**
 * Sorts items by arrival, but in turns: first the oldest of each address block, then the second
 * oldest of each, and so on. `items` are in order of arrival. An item of several blocks takes the
 * earliest of its turns.
 */
export function inFairOrder<T>(items: readonly T[], blocksOf: (item: T) => Iterable<string>): T[] {
  const counts = new Map<string, number>();
  const ranked = items.map((item) => {
    let rank = Infinity;
    for (const block of blocksOf(item)) {
      const count = counts.get(block) ?? 0;
      counts.set(block, count + 1);
      rank = Math.min(rank, count);
    }
    return { item, rank };
  });
  return ranked.sort((a, b) => a.rank - b.rank).map(({ item }) => item);
}
