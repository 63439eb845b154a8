/**
 * Calls share one result of `read` for `maxAgeMs` from the start of the read. A failed read rejects
 * the calls that wait for it, and is not cached.
 */
export function memoize<T>(read: () => Promise<T>, maxAgeMs: number): () => Promise<T> {
  let last: { readonly value: Promise<T>; readonly startedAt: number } | undefined;
  return () => {
    const now = performance.now();
    if (!last || now - last.startedAt > maxAgeMs) {
      const reading = { value: read(), startedAt: now };
      last = reading;
      reading.value.catch(() => {
        if (last === reading) last = undefined;
      });
    }
    return last.value;
  };
}
