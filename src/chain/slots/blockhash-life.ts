import { monotonicNow, msBetween, type MonotonicTime } from "../../time/monotonic.ts";

/** For how many blocks a blockhash is valid. */
const BLOCKHASH_BLOCKS = 150;
/** At one block per second, far below the chain's rate. */
const LONGEST_LIFE_MS = BLOCKHASH_BLOCKS * 1_000;

/**
 * Returns a function that tells whether a blockhash has certainly expired. It receives all
 * endpoints' block heights, again and again. What counts is the lowest rate of blocks that any
 * endpoint has shown since this check was created, but at least one block a second: an endpoint
 * that stands still must not keep an account locked.
 */
export function createLifeCheck(longestLifeMs = LONGEST_LIFE_MS) {
  interface Sighting {
    readonly blockHeight: number;
    readonly at: MonotonicTime;
  }
  const startedAt = monotonicNow();
  /** The first and the last height of each endpoint. */
  const sightings = new Map<number, { readonly first: Sighting; readonly last: Sighting }>();

  return (heights: readonly (number | undefined)[]): boolean => {
    const now = monotonicNow();
    heights.forEach((blockHeight, i) => {
      if (blockHeight === undefined) return;
      const sighting = { blockHeight, at: now };
      sightings.set(i, { first: sightings.get(i)?.first ?? sighting, last: sighting });
    });
    const blocksPerMs = [...sightings.values()].map(({ first, last }) =>
      last.at > first.at
        ? (last.blockHeight - first.blockHeight) / msBetween(first.at, last.at)
        : 0,
    );
    const lowest = sightings.size > 0 ? Math.max(0, Math.min(...blocksPerMs)) : 0;
    const lifeMs = lowest > 0 ? BLOCKHASH_BLOCKS / lowest : Infinity;
    return msBetween(startedAt, now) >= Math.min(longestLifeMs, lifeMs);
  };
}
