import { monotonicNow, msBetween } from "../../time/monotonic.ts";

/** A shorter suspension fits into the slack of the judgements of slots and heights. */
const LEAST_MS = 5_000;

/**
 * Returns a function that returns whether the machine was suspended since the last call: meanwhile
 * the wall clock moves on, and the process's own clock stands still. A wall clock that is set
 * forward looks the same.
 */
export function createSuspensionCheck(): () => boolean {
  let last = { wallMs: Date.now(), at: monotonicNow() };
  return () => {
    const now = { wallMs: Date.now(), at: monotonicNow() };
    const jumpMs = now.wallMs - last.wallMs - msBetween(last.at, now.at);
    last = now;
    return jumpMs >= LEAST_MS;
  };
}
