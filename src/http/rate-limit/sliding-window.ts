/**
 * The rule of the rate limit, in memory and in Redis: at most `max` requests of a caller in any span of `windowMs`.
 * Both keep the times of each caller's admitted requests, oldest first, and check and record in one atomic step.
 */
import { z } from "zod";
import type { Redis, Script } from "../../upstream/redis.ts";

export interface Limit {
  readonly max: number;
  readonly windowMs: number;
}

/**
 * A caller's window when a request arrives. The request is recorded, in place of the one that it replaces, only if
 * `counted` plus its cost is at most `max`.
 */
export interface WindowState {
  /** The caller's earlier requests that are still in the window, without one that is replaced. */
  readonly counted: number;
  /** The time recorded for the request. */
  readonly at: number;
  /**
   * Time until this request would fit. If it fits: until the oldest request leaves the window. If its cost can
   * never fit: until all requests have left the window.
   */
  readonly waitMs: number;
}

/** A caller takes about 125 bytes, or 450 after 20 requests. There are two generations. */
const MAX_CALLERS_PER_GENERATION = 100_000;

/**
 * Counts in the memory of this process.
 *
 * Callers are in two generations: those admitted since the last change of generations, and those admitted only before
 * it. A change drops the older generation. It happens when all its callers' requests have left the window, or earlier
 * when the newer one is full. So no request searches for callers to drop.
 */
export function createMemoryWindow({ max, windowMs }: Limit) {
  let current = new Map<string, number[]>();
  let previous = new Map<string, number[]>();
  let changedAt = performance.now();

  function changeGenerations(now: number): void {
    previous = current;
    current = new Map();
    changedAt = now;
  }

  return (caller: string, cost: number, replaces?: number): WindowState => {
    const at = performance.now();
    if (changedAt + windowMs <= at) changeGenerations(at);
    const known = current.get(caller);
    let times = known ?? previous.get(caller) ?? [];
    // At once: shifting them one by one would move all others each time.
    if (times.length > 0 && times[0]! + windowMs <= at) {
      const left = times.findIndex((time) => time + windowMs > at);
      times.splice(0, left < 0 ? times.length : left);
    }
    const replaced = replaces === undefined ? -1 : times.indexOf(replaces);
    const fits = times.length - (replaced < 0 ? 0 : 1) + cost <= max;
    if (fits && replaced >= 0) times.splice(replaced, 1);
    const counted = times.length;
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
    return { counted, at, waitMs: next === undefined ? windowMs : windowMs - (at - next) };
  };
}

/**
 * KEYS: the caller's list of times, by Redis's clock. ARGV: max, window in ms, cost, and the time of the request that
 * this one replaces or "".
 *
 * Times are rounded up and compared with a clock that is rounded down, so that rounding never shortens the window.
 * Times in the future are dropped: they were recorded before the clock was set back.
 */
const TAKE: Script<[number, number, number]> = {
  answer: z.tuple([z.int(), z.int(), z.int()]),
  text: `
local key, max, window, cost, replaces = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local at = clock[1] * 1000 + math.ceil(clock[2] / 1000)
local oldest = redis.call('LINDEX', key, 0)
while oldest and (oldest + window <= now or tonumber(oldest) > at) do
  redis.call('LPOP', key)
  oldest = redis.call('LINDEX', key, 0)
end
local counted = redis.call('LLEN', key)
local others = counted
if replaces ~= '' and redis.call('LPOS', key, replaces) then others = counted - 1 end
local fits = others + cost <= max
if fits then
  if others < counted then redis.call('LREM', key, -1, replaces) end
  counted = others
  for _ = 1, cost do redis.call('RPUSH', key, at) end
  redis.call('PEXPIRE', key, window + 1)
end
local next = redis.call('LINDEX', key, fits and 0 or math.min(counted + cost - max, counted) - 1)
return {counted, at, next and math.min(next + window - now, window) or window}
`,
};

/** Counts in Redis, for all replicas, in one round trip. Returns undefined if Redis is unavailable. */
export function createRedisWindow(redis: Redis, { max, windowMs }: Limit) {
  return async (caller: string, cost: number, replaces?: number): Promise<WindowState | undefined> => {
    const answer = await redis.run(TAKE, [`v2:limit:${caller}`], [max, windowMs, cost, replaces ?? ""]);
    if (!answer) return undefined;
    const [counted, at, waitMs] = answer;
    return { counted, at, waitMs };
  };
}
