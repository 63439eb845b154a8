import { LRUCache } from "lru-cache";
import type { Limit, Taken } from "./rate-limit.ts";

/** About 300 bytes each. */
const MAX_CALLERS = 200_000;

/**
 * Keeps the times of each caller's admitted requests in the memory of this process, and takes from what
 * is left in one synchronous step. Whoever was admitted the longest ago is forgotten first.
 */
export function createTakeInMemory({ max, windowMs }: Limit) {
  /** In the order of each caller's last admitted request. */
  const callers = new LRUCache<string, number[]>({ max: MAX_CALLERS });

  /** Drops those whose requests have all left the window. */
  function forgetExpired(now: number): void {
    for (const caller of callers.rkeys()) {
      if (callers.peek(caller)!.at(-1)! + windowMs > now) return;
      callers.delete(caller);
    }
  }

  return (caller: string, cost: number, instead?: number): Taken => {
    const at = performance.now();
    forgetExpired(at);
    const times = callers.peek(caller) ?? [];
    while (times.length > 0 && times[0]! + windowMs <= at) times.shift();
    const held = instead === undefined ? -1 : times.indexOf(instead);
    if (held >= 0) times.splice(held, 1);

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
