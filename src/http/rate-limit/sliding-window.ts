/**
 * The rule of the rate limit, in memory and in Redis: at most `max` requests of a caller in any
 * span of `windowMs`. Both keep the times of each caller's admitted requests, oldest first. In one
 * atomic step, they record `count` requests if all of them fit into the window; otherwise none.
 */
import { z } from "zod";
import { redisKeys } from "../../store/redis-keys.ts";
import type { Redis } from "../../store/redis.ts";
import { script } from "../../store/script.ts";

export interface Limit {
  readonly max: number;
  readonly windowMs: number;
}

/** A caller's window when a request arrives. Times are in ms, of the clock that the window uses. */
export interface WindowState {
  /** How many earlier requests of the caller are still in the window. */
  readonly counted: number;
  /** The times of the counted requests, oldest first. The times of this request may follow. */
  readonly times: readonly number[];
  readonly now: number;
}

/** There are two generations. docs/measurements.md says how much memory a caller takes. */
const MAX_CALLERS_PER_GENERATION = 100_000;

/**
 * Counts in this process's memory, in two generations of callers. When the newer generation is
 * `windowMs` old, or full, the older is dropped and a new one begins. So no request searches for
 * callers to drop.
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

  return (caller: string, count: number): WindowState => {
    const now = performance.now();
    if (changedAt + windowMs <= now) changeGenerations(now);
    const known = current.get(caller);
    let times = known ?? previous.get(caller) ?? [];
    // Remove expired times in one step: shifting them one by one would move all others each time.
    if (times.length > 0 && times[0]! + windowMs <= now) {
      const left = times.findIndex((time) => time + windowMs > now);
      times.splice(0, left < 0 ? times.length : left);
    }
    const counted = times.length;
    if (counted + count <= max) {
      // Most callers send one request: an array of this length takes less memory than one that
      // grows.
      if (counted === 0) times = new Array<number>(count).fill(now);
      else for (let i = 0; i < count; i++) times.push(now);
      if (known !== times) {
        if (!known && current.size === MAX_CALLERS_PER_GENERATION) changeGenerations(now);
        current.set(caller, times);
      }
    }
    return { counted, times, now };
  };
}

/**
 * `recorded`: the caller's list of times, by Redis's clock. Returns Redis's time, and a text of the
 * earlier times, separated by spaces.
 *
 * Times are rounded up and compared with a clock that is rounded down, so that rounding never
 * shortens the window. Times in the future are dropped: they were recorded before the clock was set
 * back.
 */
const TAKE = script({
  keys: ["recorded"],
  args: ["max", "windowMs", "count"],
  answer: z.tuple([z.int(), z.string()]),
  text: `
local window = tonumber(windowMs)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local at = clock[1] * 1000 + math.ceil(clock[2] / 1000)
local times = redis.call('LRANGE', recorded, 0, -1)
while times[1] and (times[1] + window <= now or tonumber(times[1]) > at) do
  redis.call('LPOP', recorded)
  table.remove(times, 1)
end
if #times + count <= tonumber(max) then
  for _ = 1, count do redis.call('RPUSH', recorded, at) end
  redis.call('PEXPIRE', recorded, window + 1)
end
return {now, table.concat(times, ' ')}
`,
});

/**
 * Counts in Redis, for all replicas, in one round trip. Returns undefined if Redis is unavailable.
 */
export function createRedisWindow(redis: Redis, { max, windowMs }: Limit) {
  return async (caller: string, count: number): Promise<WindowState | undefined> => {
    const recorded = redisKeys.rateLimit(caller);
    const answer = await redis.run(TAKE, { recorded, max, windowMs, count });
    if (!answer) return undefined;
    const times = answer[1] === "" ? [] : answer[1].split(" ").map(Number);
    return { counted: times.length, times, now: answer[0] };
  };
}
