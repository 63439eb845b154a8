/**
 * Exponential backoff. Its users decide what a failure is, and what to do while it lasts.
 *
 * | Backoff             | after a failure                                 | after a success |
 * |---------------------|-------------------------------------------------|-----------------|
 * | none                | lasts `firstMs`                                 | none            |
 * | lasts (`endsAt`)    | unchanged: failures at the same time count once | none            |
 * | has ended           | lasts twice as long, at most `longestMs`        | none            |
 *
 * "None" is `undefined`.
 */
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "./monotonic.ts";

export interface Backoff {
  /** How long the backoff lasts in all. */
  readonly waitMs: number;
  readonly endsAt: MonotonicTime;
}

export interface BackoffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
}

export function afterFailure(backoff: Backoff | undefined, limits: BackoffLimits): Backoff {
  if (backoff && isBackingOff(backoff)) return backoff;
  const waitMs = nextWaitMs(backoff?.waitMs, limits);
  return { waitMs, endsAt: addMs(monotonicNow(), waitMs) };
}

/** Returns how long the next wait is. `lastMs`: the last wait since the last success, if any. */
export function nextWaitMs(lastMs: number | undefined, limits: BackoffLimits): number {
  return lastMs === undefined ? limits.firstMs : Math.min(2 * lastMs, limits.longestMs);
}

export const isBackingOff = (backoff: Backoff | undefined): boolean =>
  backoff !== undefined && msUntil(backoff.endsAt) > 0;
