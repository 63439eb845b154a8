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

/**
 * Heights far above the highest one reported in the last minute (if any) are impossible.
 */
export function createHeightCheck(now = monotonicNow) {
  let highest = { height: 0, at: LONG_AGO };
  const ageMs = () => msBetween(highest.at, now());

  function isPossible(height: number): boolean {
    return (
      ageMs() > MAX_AGE_MS || height <= highest.height + SLACK + (ageMs() / 1000) * MAX_PER_SECOND
    );
  }

  return {
    isPossible,

    /** Call only if the endpoint's blockhash supports the height. Ignores impossible heights. */
    report(height: number): void {
      if (isPossible(height) && (height >= highest.height || ageMs() > MAX_AGE_MS))
        highest = { height, at: now() };
    },
  };
}
