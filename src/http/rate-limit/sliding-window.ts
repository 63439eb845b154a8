/**
 * The rule of the rate limit, in memory and in Redis: at most `max` requests of a caller in any
 * span of `windowMs`. Both keep the times of each caller's requests, oldest first. In one atomic step,
 * they record `cost` requests if all of them fit into the window; otherwise one, if one fits.
 */
import { z } from "zod";
import { createLruCache } from "../../store/lru-cache.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import type { Redis } from "../../store/redis.ts";
import { script } from "../../store/script.ts";

export interface Limit {
  readonly max: number;
  readonly windowMs: number;
}

/** A caller's window after a request. */
export interface Reservation {
  /** Whether the whole cost fitted. */
  readonly isGranted: boolean;
  /** How many requests of the caller are in the window. */
  readonly requests: number;
  /**
   * The time until the first of them leaves; if refused, until the whole cost fits. At most the
   * window.
   */
  readonly waitMs: number;
}

/** Each takes about 500 bytes. */
const MAX_CALLERS = 100_000;

/** Counts in this process's memory. The least recently admitted caller goes first. */
export function createMemoryWindow({ max, windowMs }: Limit) {
  /** `first`: the index of the first time in the window. */
  const callers = createLruCache<string, { times: number[]; first: number }>(MAX_CALLERS);

  return (caller: string, cost: number): Reservation => {
    const now = performance.now();
    const entry = callers.peek(caller) ?? { times: [], first: 0 };
    const { times } = entry;
    while (times[entry.first]! + windowMs <= now) entry.first++;
    // Removing moves all others, so it waits until it removes more than it moves.
    if (entry.first > times.length / 2) {
      times.splice(0, entry.first);
      entry.first = 0;
    }
    const room = max - (times.length - entry.first);
    const isGranted = cost <= room;
    const count = isGranted ? cost : Math.min(1, room);
    for (let i = 0; i < count; i++) times.push(now);
    if (count > 0) callers.set(caller, entry);
    const requests = times.length - entry.first;
    // Of the requests, the oldest being 0, the one that must leave before anything changes.
    const leaving = isGranted ? 0 : Math.min(requests + cost - max, requests) - 1;
    // The sum may be rounded up.
    const waitMs = Math.min(windowMs, (times[entry.first + leaving] ?? now) + windowMs - now);
    return { isGranted, requests, waitMs };
  };
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
const RESERVE = script({
  keys: ["times"],
  args: ["max", "windowMs", "cost"],
  answer: z.tuple([z.literal([0, 1]), z.int().nonnegative(), z.int().nonnegative()]),
  text: `
local max, window, cost = tonumber(max), tonumber(windowMs), tonumber(cost)
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
local fits = counted + cost <= max
local count = fits and cost or math.min(1, math.max(0, max - counted))
for _ = 1, count do redis.call('RPUSH', times, at) end
if count > 0 then redis.call('PEXPIRE', times, window + 1) end
counted = counted + count
local leaving = fits and 0 or math.min(counted + cost - max, counted) - 1
local wait = math.max(0, math.min(window, timeOf(leaving) + window - now))
return {fits and 1 or 0, counted, wait}
`,
});

/**
 * Counts in Redis, for all replicas, in one round trip. Returns undefined if Redis is unavailable.
 */
export function createRedisWindow(redis: Redis, { max, windowMs }: Limit) {
  return async (caller: string, cost: number): Promise<Reservation | undefined> => {
    const times = redisKeys.rateLimit(caller);
    const answer = await redis.run(RESERVE, { times, max, windowMs, cost });
    if (!answer) return undefined;
    const [isGranted, requests, waitMs] = answer;
    return { isGranted: isGranted === 1, requests, waitMs };
  };
}
