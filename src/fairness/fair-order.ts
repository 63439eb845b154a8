/**
 * Sorts items by arrival, but in turns: first the oldest of each address block, then the second
 * oldest of each, and so on. `items` are in order of arrival. An item of several blocks takes the
 * earliest of its turns. `startOf`: how many turns a block has had before. `costOf`: how many turns
 * an item takes.
 */
export function inFairOrder<T>(
  items: readonly T[],
  blocksOf: (item: T) => Iterable<string>,
  startOf: (block: string) => number = () => 0,
  costOf: (item: T, block: string) => number = () => 1,
): T[] {
  const turns = new Map<string, number>();
  const ranks = items.map((item) => {
    let rank = Infinity;
    for (const block of blocksOf(item)) {
      const turn = turns.get(block) ?? startOf(block);
      turns.set(block, turn + costOf(item, block));
      rank = Math.min(rank, turn);
    }
    return { item, rank };
  });
  return ranks.sort((a, b) => a.rank - b.rank).map(({ item }) => item);
}
