import { LONG_AGO, monotonicNow, msBetween } from "../../time/monotonic.ts";

/** Far above the chain's rate of about 5 blocks a second. */
const MAX_PER_SECOND = 20;
/**
 * In blocks. Nodes behind one load balancer differ in height, and a node that was behind catches up
 * fast.
 */
const SLACK = 500;
/**
 * How long a height counts. A wrong low height makes true heights look impossible for at most this
 * long.
 */
const MAX_AGE_MS = 60_000;

export type HeightCheck = ReturnType<typeof createHeightCheck>;

/**
 * Tracks the block heights of one endpoint: another endpoint's heights say nothing about them.
 * Heights far above the highest one of the last minute (if any) are impossible.
 */
export function createHeightCheck(now = monotonicNow) {
  let highest = { height: 0, at: LONG_AGO };

  return {
    /** Records a height; returns false, and ignores the height, if it is impossible. */
    take(height: number): boolean {
      const ageMs = msBetween(highest.at, now());
      const isOver = ageMs > MAX_AGE_MS;
      if (!isOver && height > highest.height + SLACK + (ageMs / 1_000) * MAX_PER_SECOND)
        return false;
      if (isOver || height >= highest.height) highest = { height, at: now() };
      return true;
    },
  };
}
