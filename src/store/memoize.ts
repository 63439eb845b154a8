import { monotonicNow, type MonotonicTime, msSince } from "../time/monotonic.ts";

/**
 * Calls share one result of `read` for `maxAgeMs` from the start of the read. A failed read rejects
 * the calls that wait for it, and is not cached.
 */
export function memoize<T>(read: () => Promise<T>, maxAgeMs: number): () => Promise<T> {
  let last: { readonly value: Promise<T>; readonly startedAt: MonotonicTime } | undefined;
  return () => {
    if (!last || msSince(last.startedAt) > maxAgeMs) {
      const reading = { value: read(), startedAt: monotonicNow() };
      last = reading;
      reading.value.catch(() => {
        if (last === reading) last = undefined;
      });
    }
    return last.value;
  };
}

/** Returns the key's pending promise, or starts one. */
export function joinInFlight<K, T>(
  pending: Map<K, Promise<T>>,
  key: K,
  start: () => Promise<T>,
): Promise<T> {
  const promise =
    pending.get(key) ??
    start().finally(() => {
      pending.delete(key);
    });
  pending.set(key, promise);
  return promise;
}
