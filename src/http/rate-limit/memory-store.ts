import type { Limit, Reservation } from "./store.ts";

/** A caller takes about 125 bytes, or 450 after 20 requests. There are two generations. */
const MAX_CALLERS_PER_GENERATION = 100_000;

/**
 * Keeps the times of each caller's admitted requests in the memory of this process, and reserves in one
 * synchronous step.
 *
 * Callers are in two generations: those admitted since the last change of generations, and those admitted only before
 * it. A change drops the older generation. It happens when all its callers' requests have left the window, or earlier
 * when the newer one is full. So no request searches for callers to drop.
 */
export function createMemoryStore({ max, windowMs }: Limit) {
  let current = new Map<string, number[]>();
  let previous = new Map<string, number[]>();
  let changedAt = performance.now();

  function changeGenerations(now: number): void {
    previous = current;
    current = new Map();
    changedAt = now;
  }

  return (caller: string, cost: number, replaces?: number): Reservation => {
    const at = performance.now();
    if (changedAt + windowMs <= at) changeGenerations(at);
    const known = current.get(caller);
    let times = known ?? previous.get(caller) ?? [];
    while (times.length > 0 && times[0]! + windowMs <= at) times.shift();
    const replaced = replaces === undefined ? -1 : times.indexOf(replaces);
    if (replaced >= 0) times.splice(replaced, 1);

    const counted = times.length;
    const fits = counted + cost <= max;
    if (fits) {
      // Most callers send one request, and an array that `push` grows has room for 17.
      if (counted === 0) times = new Array<number>(cost).fill(at);
      else for (let i = 0; i < cost; i++) times.push(at);
      if (known !== times) {
        if (!known && current.size === MAX_CALLERS_PER_GENERATION) changeGenerations(at);
        current.set(caller, times);
      }
    }
    const next = times[fits ? 0 : Math.min(counted + cost - max, counted) - 1];
    return { counted, at, waitMs: next === undefined ? windowMs : next + windowMs - at };
  };
}
