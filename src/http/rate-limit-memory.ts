import type { Limit, Taken } from "./rate-limit.ts";

/** About 300 bytes each. */
const MAX_CALLERS = 200_000;

/**
 * Keeps the times of each caller's admitted requests in the memory of this process, and takes from what
 * is left in one synchronous step.
 *
 * The map is in the order of each caller's last admitted request: whoever has been away longest comes
 * first, and is forgotten first.
 */
export function createTakeInMemory({ max, windowMs }: Limit) {
  const callers = new Map<string, number[]>();

  /** Drops those whose requests have all left the window, and the oldest when there are too many. */
  function forgetOldest(now: number): void {
    for (const [caller, times] of callers) {
      const isExpired = times.at(-1)! + windowMs <= now;
      if (!isExpired && callers.size <= MAX_CALLERS) return;
      callers.delete(caller);
    }
  }

  return (caller: string, cost: number, instead?: number): Taken => {
    const at = performance.now();
    const times = (callers.get(caller) ?? []).filter((time) => time + windowMs > at);
    if (instead !== undefined && times.includes(instead)) times.splice(times.indexOf(instead), 1);
    const counted = times.length;
    const fits = counted + cost <= max;
    if (fits) {
      for (let i = 0; i < cost; i++) times.push(at);
      callers.delete(caller);
    }
    if (times.length > 0) callers.set(caller, times);
    else callers.delete(caller);
    forgetOldest(at);
    const next = times[fits ? 0 : Math.min(counted + cost - max, counted) - 1];
    return { counted, at, waitMs: next === undefined ? windowMs : next + windowMs - at };
  };
}
