import { z } from "zod";
import type { Redis, Script } from "../../upstream/redis.ts";
import type { Limit, Reservation } from "./store.ts";

/**
 * KEYS: the caller. ARGV: max, window in ms, cost, and the time of the request that this one replaces or "".
 *
 * The times of a caller's admitted requests are a list, oldest first, by Redis's clock. They are rounded up
 * and compared with a clock that is rounded down, so that rounding never shortens the window. Times in the
 * future are dropped: they were recorded before the clock was set back.
 */
const RESERVE: Script<[number, number, number]> = {
  answer: z.tuple([z.int(), z.int(), z.int()]),
  text: `
local key, max, window, cost, replaces = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local at = clock[1] * 1000 + math.ceil(clock[2] / 1000)
if replaces ~= '' then redis.call('LREM', key, -1, replaces) end
local oldest = redis.call('LINDEX', key, 0)
while oldest and (oldest + window <= now or tonumber(oldest) > at) do
  redis.call('LPOP', key)
  oldest = redis.call('LINDEX', key, 0)
end
local counted = redis.call('LLEN', key)
local fits = counted + cost <= max
if fits then
  for _ = 1, cost do redis.call('RPUSH', key, at) end
  redis.call('PEXPIRE', key, window + 1)
end
local next = redis.call('LINDEX', key, fits and 0 or math.min(counted + cost - max, counted) - 1)
return {counted, at, next and math.min(next + window - now, window) or window}
`,
};

/**
 * Keeps the times of each caller's admitted requests in Redis, for all replicas, and reserves in one script
 * and one round trip. Returns undefined if Redis is unavailable.
 */
export function createRedisStore(redis: Redis, { max, windowMs }: Limit) {
  return async (caller: string, cost: number, replaces?: number): Promise<Reservation | undefined> => {
    const answer = await redis.run(RESERVE, [`v2:limit:${caller}`], [max, windowMs, cost, replaces ?? ""]);
    if (!answer) return undefined;
    const [counted, at, waitMs] = answer;
    return { counted, at, waitMs };
  };
}
