/** Half of the requests and fees go to the first 10 accounts, so that callers collide. */
const BUSY = 10;

/**
 * Makes all random choices of a run, by mulberry32. The same seed gives the same sequence of
 * choices.
 */
export function createRandom(seed: number) {
  let state = seed;
  /** Returns a number that is at least 0 and less than 1. */
  function fraction(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const below = (limit: number) => Math.floor(fraction() * limit);
  const isChosen = (probability: number) => fraction() < probability;
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
  return {
    /** Returns an integer that is at least 0 and less than the limit. */
    below,
    /** Returns true with this probability. */
    isChosen,
    pick,
    pickBusy: <T>(list: readonly T[]): T => pick(isChosen(0.5) ? list.slice(0, BUSY) : list),
  };
}
