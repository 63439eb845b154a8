declare const monotonic: unique symbol;

/**
 * A time of this process's monotonic clock, `performance.now()`, which no clock change moves. To
 * the compiler it is not a number, so it cannot be mixed up with a time of the wall clock
 * (`Date.now()`), a time of Redis, or a duration. Compare two times with `<` and `>`.
 */
export interface MonotonicTime {
  readonly [monotonic]: true;
}

const toNumber = (time: MonotonicTime) => time as unknown as number;
const toTime = (ms: number) => ms as unknown as MonotonicTime;

/** Before all times. */
export const LONG_AGO = toTime(-Infinity);
/** After all times. */
export const NEVER = toTime(Infinity);

export const monotonicNow = (): MonotonicTime => toTime(performance.now());

export const addMs = (time: MonotonicTime, ms: number): MonotonicTime =>
  toTime(toNumber(time) + ms);

export const earliest = (a: MonotonicTime, b: MonotonicTime) => (a < b ? a : b);
export const latest = (a: MonotonicTime, b: MonotonicTime) => (a > b ? a : b);

/** Returns the ms from `from` to `to`; negative if `to` is earlier. */
export const msBetween = (from: MonotonicTime, to: MonotonicTime): number =>
  toNumber(to) - toNumber(from);

export const msSince = (time: MonotonicTime): number => performance.now() - toNumber(time);

/** A time as an operator sees it, by this machine's wall clock: ISO 8601, in UTC. */
export const toIsoTime = (time: MonotonicTime): string =>
  new Date(Date.now() + msUntil(time)).toISOString();

/** Returns the ms until `time`; negative once it has passed. */
export const msUntil = (time: MonotonicTime): number => toNumber(time) - performance.now();
