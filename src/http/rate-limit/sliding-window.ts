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

/** What a request counts as, less what an earlier call has taken for it. */
export interface Take {
  readonly cost: number;
  readonly taken: number;
}

/** A caller's window when a request arrives. */
export interface WindowState {
  /** How many earlier requests of the caller are still in the window. */
  readonly counted: number;
  /** The time until the first counted request leaves; if refused, until the whole cost fits. */
  readonly waitMs: number;
}

/**
 * Returns which counted request, the oldest being 0, must leave the window before anything changes
 * for the caller. None: a whole window must pass.
 */
const indexToLeave = (counted: number, { cost, taken }: Take, max: number): number =>
  counted + cost - taken <= max ? 0 : Math.min(counted + cost - max, counted) - 1;

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

  return (caller: string, take: Take): WindowState => {
    const now = performance.now();
    const count = take.cost - take.taken;
    if (changedAt + windowMs <= now) changeGenerations(now);
    const known = current.get(caller);
    let times = known ?? previous.get(caller) ?? [];
    // Remove expired times in one step: shifting them one by one would move all others each time.
    if (times.length > 0 && times[0]! + windowMs <= now) {
      const left = times.findIndex((time) => time + windowMs > now);
      times.splice(0, left < 0 ? times.length : left);
    }
    const counted = times.length;
    const leaves = times[indexToLeave(counted, take, max)] ?? now;
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
    return { counted, waitMs: leaves + windowMs - now };
  };
}

/**
 * `recorded`: the caller's list of times, by Redis's clock, oldest first. Finds the first time that
 * has not expired by a binary search, and returns only what the answer needs: however long the list
 * is, a request costs the same, admitted or refused.
 *
 * Times are rounded up and compared with a clock that is rounded down, so that rounding never
 * shortens the window. Times in the future are dropped: they were recorded before the clock was set
 * back.
 */
const TAKE = script({
  keys: ["recorded"],
  args: ["max", "windowMs", "cost", "taken"],
  answer: z.tuple([z.int(), z.int()]),
  text: `
local max, window, cost = tonumber(max), tonumber(windowMs), tonumber(cost)
local count = cost - tonumber(taken)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local at = clock[1] * 1000 + math.ceil(clock[2] / 1000)
local function timeOf(index) return tonumber(redis.call('LINDEX', recorded, index)) end
local length = redis.call('LLEN', recorded)
local first, after = 0, length
if length > 0 and timeOf(0) + window > now then after = 0 end
while first < after do
  local middle = math.floor((first + after) / 2)
  if timeOf(middle) + window <= now then first = middle + 1 else after = middle end
end
if first > 0 then redis.call('LTRIM', recorded, first, -1) end
local counted = length - first
while counted > 0 and timeOf(0) > at do
  redis.call('LPOP', recorded)
  counted = counted - 1
end
local fits = counted + count <= max
local leaving = fits and 0 or math.min(counted + cost - max, counted) - 1
local leaves = counted > 0 and leaving >= 0 and timeOf(leaving) or now
if fits then
  for _ = 1, count do redis.call('RPUSH', recorded, at) end
  if count > 0 then redis.call('PEXPIRE', recorded, window + 1) end
end
return {counted, leaves + window - now}
`,
});

/**
 * Counts in Redis, for all replicas, in one round trip. Returns undefined if Redis is unavailable.
 */
export function createRedisWindow(redis: Redis, { max, windowMs }: Limit) {
  return async (caller: string, take: Take): Promise<WindowState | undefined> => {
    const recorded = redisKeys.rateLimit(caller);
    const answer = await redis.run(TAKE, { recorded, max, windowMs, ...take });
    return answer && { counted: answer[0], waitMs: answer[1] };
  };
}
