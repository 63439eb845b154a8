import { LRUCache } from "lru-cache";
import type { Limit, Reservation } from "./store.ts";

/** Each caller takes about 300 bytes. */
const MAX_CALLERS = 200_000;

/**
 * Keeps the times of each caller's admitted requests in the memory of this process, and reserves in one
 * synchronous step. When there are too many callers, drops the one whose last admitted request is oldest.
 */
export function createMemoryStore({ max, windowMs }: Limit) {
  /** Ordered by each caller's last admitted request. */
  const callers = new LRUCache<string, number[]>({ max: MAX_CALLERS });

  /** Drops callers whose requests have all left the window. */
  function dropExpired(now: number): void {
    for (const caller of callers.rkeys()) {
      if (callers.peek(caller)!.at(-1)! + windowMs > now) return;
      callers.delete(caller);
    }
  }

  return (caller: string, cost: number, replaces?: number): Reservation => {
    const at = performance.now();
    dropExpired(at);
    const times = callers.peek(caller) ?? [];
    while (times.length > 0 && times[0]! + windowMs <= at) times.shift();
    const replaced = replaces === undefined ? -1 : times.indexOf(replaces);
    if (replaced >= 0) times.splice(replaced, 1);

    const counted = times.length;
    const fits = counted + cost <= max;
    if (fits) {
      for (let i = 0; i < cost; i++) times.push(at);
      callers.set(caller, times);
    } else if (counted === 0) callers.delete(caller);
    const next = times[fits ? 0 : Math.min(counted + cost - max, counted) - 1];
    return { counted, at, waitMs: next === undefined ? windowMs : next + windowMs - at };
  };
}
