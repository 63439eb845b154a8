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
  readonly earlierCost: number;
}

/** A caller's window when a request arrives. */
export interface WindowState {
  /** Whether the whole cost fits, and so is counted. */
  readonly isCounted: boolean;
  /** How many earlier requests of the caller are still in the window. */
  readonly earlierRequests: number;
  /**
   * The time until the first counted request leaves; if refused, until the whole cost fits. At most
   * the window.
   */
  readonly waitMs: number;
}

/**
 * Returns which counted request, the oldest being 0, must leave the window before anything changes
 * for the caller. None: a whole window must pass.
 */
const indexToLeave = (requests: number, { cost, earlierCost }: Take, max: number): number =>
  requests + cost - earlierCost <= max ? 0 : Math.min(requests + cost - max, requests) - 1;

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
    const count = take.cost - take.earlierCost;
    if (changedAt + windowMs <= now) changeGenerations(now);
    const currentTimes = current.get(caller);
    let times = currentTimes ?? previous.get(caller) ?? [];
    let first = firstIndex(times, (time) => time + windowMs > now);
    // Removing moves all others, so it waits until it removes more than it moves.
    if (first > times.length / 2) {
      times.splice(0, first);
      first = 0;
    }
    const earlierRequests = times.length - first;
    const leaves = times[first + indexToLeave(earlierRequests, take, max)] ?? now;
    const isCounted = earlierRequests + count <= max;
    if (isCounted) {
      // Most callers send one request: an array of this length takes less memory than one that
      // grows.
      if (times.length === 0) times = new Array<number>(count).fill(now);
      else for (let i = 0; i < count; i++) times.push(now);
      if (currentTimes !== times) {
        if (!currentTimes && current.size === MAX_CALLERS_PER_GENERATION) changeGenerations(now);
        current.set(caller, times);
      }
    }
    // The sum may be rounded up.
    const waitMs = Math.min(windowMs, leaves + windowMs - now);
    return { isCounted, earlierRequests, waitMs };
  };
}

/** Returns the index of the first time that `is`; `is` is false, then true, in order of `times`. */
function firstIndex(times: readonly number[], is: (time: number) => boolean): number {
  let first = 0;
  for (let end = times.length; first < end;) {
    const middle = Math.floor((first + end) / 2);
    if (is(times[middle]!)) end = middle;
    else first = middle + 1;
  }
  return first;
}

/**
 * `times`: the caller's list of times, by Redis's clock, oldest first. Finds the first time that
 * has not expired by a binary search, and returns only what the answer needs: however long the list
 * is, a request costs the same, admitted or refused.
 *
 * Times are rounded up and compared with a clock that is rounded down, so that rounding never
 * shortens the window. Times in the future are dropped: they were recorded before the clock was set
 * back. What is no number has expired.
 */
const TAKE = script({
  keys: ["times"],
  args: ["max", "windowMs", "cost", "earlierCost"],
  answer: z.tuple([z.literal([0, 1]), z.int().nonnegative(), z.int().nonnegative()]),
  text: `
local max, window, cost = tonumber(max), tonumber(windowMs), tonumber(cost)
local count = cost - tonumber(earlierCost)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local at = clock[1] * 1000 + math.ceil(clock[2] / 1000)
local function timeOf(index) return tonumber(redis.call('LINDEX', times, index)) or 0 end
local length = redis.call('LLEN', times)
local first, after = 0, length
if length > 0 and timeOf(0) + window > now then after = 0 end
while first < after do
  local middle = math.floor((first + after) / 2)
  if timeOf(middle) + window <= now then first = middle + 1 else after = middle end
end
if first > 0 then redis.call('LTRIM', times, first, -1) end
local counted = length - first
while counted > 0 and timeOf(0) > at do
  redis.call('LPOP', times)
  counted = counted - 1
end
local fits = counted + count <= max
local leaving = fits and 0 or math.min(counted + cost - max, counted) - 1
local leaves = counted > 0 and leaving >= 0 and timeOf(leaving) or now
if fits then
  for _ = 1, count do redis.call('RPUSH', times, at) end
  if count > 0 then redis.call('PEXPIRE', times, window + 1) end
end
local wait = math.max(0, math.min(window, leaves + window - now))
return {fits and 1 or 0, counted, wait}
`,
});

/**
 * Counts in Redis, for all replicas, in one round trip. Returns undefined if Redis is unavailable.
 */
export function createRedisWindow(redis: Redis, { max, windowMs }: Limit) {
  return async (caller: string, take: Take): Promise<WindowState | undefined> => {
    const times = redisKeys.rateLimit(caller);
    const answer = await redis.run(TAKE, { times, max, windowMs, ...take });
    if (!answer) return undefined;
    const [isCounted, earlierRequests, waitMs] = answer;
    return { isCounted: isCounted === 1, earlierRequests, waitMs };
  };
}
