/**
 * Token buckets, the rule of all budgets. A bucket holds at most `capacity` units, starts full, and
 * refills evenly, one unit in `msPerUnit`. So any hour gives at most `capacity` plus what an hour
 * refills. The state of a bucket is one number: the time at which the bucket is full again. A
 * bucket is never fuller than full nor emptier than empty: a time further ahead than an empty
 * bucket's was written by a wrong clock, and counts as an empty bucket's. A call takes the same
 * amount from several buckets. The rule is implemented twice: in TypeScript for the memory of one
 * process, and in Lua for all replicas.
 */
import { z } from "zod";
import { createLruCache } from "./lru-cache.ts";
import { redisKeys } from "./redis-keys.ts";
import type { Redis } from "./redis.ts";
import { script } from "./script.ts";

export interface Bucket {
  readonly name: string;
  /** How many units the full bucket holds. */
  readonly capacity: number;
  /** The part of the capacity that the caller may use. */
  readonly burst: number;
  readonly msPerUnit: number;
  /** To return units: the `fullAt` of the call that took them. */
  readonly wasFullAt?: number;
}

/** What to take: as much of `wanted` as is available, but nothing if that is less than `least`. */
interface Wanted {
  readonly wanted: number;
  readonly least: number;
}

/** Times are in ms of the buckets' clock: `performance.now()` or Redis's. */
interface Answer {
  readonly taken: number;
  readonly now: number;
  /** When each bucket would have been full without the call; at once if it was full. */
  readonly fullAt: readonly number[];
}

/** Tolerates rounding errors, which are far smaller. */
const ROUNDING_MS = 1;
/**
 * A second more than an hour, so that {@link ROUNDING_MS} never lets an hour give one unit too
 * much.
 */
const HOUR_MS = 3_601_000;
/** A process keeps at most this many buckets in memory. Each takes about 200 bytes. */
const MAX_BUCKETS = 50_000;
/**
 * Without Redis, a replica takes at most this fraction of a bucket: four replicas then stay within
 * the limit.
 */
const FRACTION_WITHOUT_REDIS = 1 / 4;
/** When to retry an amount that is larger than the reduced bucket: Redis may be back by then. */
const RETRY_WITHOUT_REDIS_MS = 30_000;

/**
 * Creates a bucket that gives at most `perHour` units in any hour. If `perHour` is 1, a unit
 * refills in two hours.
 */
export function hourlyBucket(name: string, perHour: number, burst: number): Bucket {
  const msPerUnit = HOUR_MS / Math.max(perHour - burst, perHour / 2);
  return { name, capacity: burst, burst, msPerUnit };
}

const COUNT = z.int().nonnegative();

/**
 * To return units, `wanted` is negative: all is returned but what has refilled since they were
 * taken, otherwise an hour could give them twice. With `wasFullAt`, more can be charged too, which
 * leaves a bucket empty at most.
 */
function createMemoryBuckets() {
  const full = createLruCache<string, number>(MAX_BUCKETS);

  return (buckets: readonly Bucket[], { wanted, least }: Wanted): Answer => {
    const now = performance.now();
    const latest = buckets.map(
      ({ capacity, msPerUnit }) => now + capacity * msPerUnit + ROUNDING_MS,
    );
    const fullAt = buckets.map(({ name }, i) =>
      Math.min(Math.max(now, full.get(name) ?? 0), latest[i]!),
    );
    const rooms = buckets.map(({ burst, msPerUnit, wasFullAt }, i) => {
      const roomMs = burst * msPerUnit - (fullAt[i]! - now) + ROUNDING_MS;
      return wasFullAt === undefined ? Math.floor(roomMs / msPerUnit) : wanted;
    });
    const fits = Math.min(wanted, ...rooms);
    const taken = fits >= least ? fits : 0;
    for (const [i, { name, msPerUnit, wasFullAt = now }] of buckets.entries()) {
      const refilledMs = Math.max(0, now - wasFullAt);
      const takenMs = Math.max(taken, Math.min(0, taken + refilledMs / msPerUnit)) * msPerUnit;
      const isFullAt = Math.min(fullAt[i]! + takenMs, latest[i]!);
      if (isFullAt > now) full.set(name, isFullAt);
      else full.delete(name);
    }
    return { taken, now, fullAt };
  };
}

/**
 * KEYS: the buckets. `buckets`: the same, as JSON. Returns taken, now, and fullAt of each bucket.
 * Times are those of Redis's clock. What is no number counts as a full bucket. Replaces a time that
 * is too far ahead even if nothing is taken: otherwise the bucket would stay empty until that time.
 */
const TAKE = script({
  args: ["buckets", "wanted", "least"],
  answer: z
    .tuple([z.int(), COUNT], COUNT)
    .transform(([taken, now, ...fullAt]): Answer => ({ taken, now, fullAt })),
  text: `
buckets, wanted, least = cjson.decode(buckets), tonumber(wanted), tonumber(least)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local latest, fullAt, fits = {}, {}, wanted
for i, bucket in ipairs(buckets) do
  latest[i] = now + bucket.capacity * bucket.msPerUnit + ${ROUNDING_MS}
  local stored = tonumber(redis.call('GET', KEYS[i])) or 0
  fullAt[i] = math.min(math.max(now, stored), latest[i])
  local room = bucket.burst * bucket.msPerUnit - (fullAt[i] - now) + ${ROUNDING_MS}
  if not bucket.wasFullAt then fits = math.min(fits, math.floor(room / bucket.msPerUnit)) end
end
local taken = fits >= least and fits or 0
for i, bucket in ipairs(buckets) do
  local refilled = math.max(0, now - (bucket.wasFullAt or now))
  local ms = math.max(taken, math.min(0, taken + refilled / bucket.msPerUnit)) * bucket.msPerUnit
  local full = math.min(fullAt[i] + ms, latest[i])
  if full > now then redis.call('SET', KEYS[i], full, 'PX', math.ceil(full - now))
  else redis.call('DEL', KEYS[i]) end
end
return {taken, now, unpack(fullAt)}
`,
});

export interface Taken {
  readonly amount: number;
  /** Unless all is taken, the time until `least` more is available; Infinity if never. */
  readonly waitMs: number;
  /** The bucket that sets `waitMs`. */
  readonly slowest: Bucket;
  /** Returns `unused` units; may be called several times. A negative number charges more. */
  giveBack(unused: number): void;
}

/**
 * Creates buckets that all replicas share in Redis; without `redis`, buckets of this process. While
 * a replica cannot reach Redis, it takes at most a quarter of what each bucket allows, from
 * buckets of its own.
 */
export function createBuckets(needs: {
  /** Distinguishes these buckets from others in the same Redis. */
  name: string;
  redis: Redis | undefined;
}) {
  const { name, redis } = needs;
  const memory = createMemoryBuckets();
  /** Returns undefined if Redis is unavailable. */
  const inRedis = async (buckets: readonly Bucket[], request: Wanted) =>
    redis?.run(TAKE, {
      ...request,
      keys: buckets.map((bucket) => redisKeys.bucket(name, bucket.name)),
      buckets: JSON.stringify(buckets),
    });
  const toFraction = ({ name, capacity, burst, msPerUnit }: Bucket) => ({
    name,
    capacity: capacity * FRACTION_WITHOUT_REDIS,
    burst: burst * FRACTION_WITHOUT_REDIS,
    msPerUnit: msPerUnit / FRACTION_WITHOUT_REDIS,
  });

  return {
    /**
     * Takes the units that every bucket has, up to `wanted`; none if that is less than `least`. See
     * {@link Wanted}.
     */
    async take(wholeBuckets: readonly Bucket[], request: Wanted): Promise<Taken> {
      const { wanted, least } = request;
      const tooSmall = wholeBuckets.find(({ burst }) => burst < least);
      if (tooSmall)
        return { amount: 0, waitMs: Infinity, slowest: tooSmall, giveBack: () => undefined };
      const shared = await inRedis(wholeBuckets, request);
      const buckets = redis && !shared ? wholeBuckets.map(toFraction) : wholeBuckets;
      const { taken, now, fullAt } = shared ?? memory(buckets, request);
      const amount = Math.min(wanted, taken + least);
      const waits = buckets.map(({ burst, msPerUnit }, i) =>
        burst < least ? RETRY_WITHOUT_REDIS_MS : fullAt[i]! - now + (amount - burst) * msPerUnit,
      );
      const waitMs = Math.max(0, ...waits);
      return {
        amount: taken,
        waitMs,
        slowest: wholeBuckets[Math.max(0, waits.indexOf(waitMs))]!,
        giveBack(unusedUnits) {
          if (unusedUnits === 0) return;
          const takenBuckets = buckets.map((bucket, i) => ({ ...bucket, wasFullAt: fullAt[i]! }));
          const back = { wanted: -unusedUnits, least: -unusedUnits };
          // Not retried: a lost return makes the budget too small, but a repeated one would make it
          // too large.
          if (shared) void inRedis(takenBuckets, back);
          else memory(takenBuckets, back);
        },
      };
    },

    /** The fraction that is left, 0 to 1, of what the caller may use of a bucket. */
    async leftRatio(bucket: Bucket): Promise<number> {
      if (bucket.burst === 0) return 0;
      const nothing = { wanted: 0, least: 0 };
      const answer = (await inRedis([bucket], nothing)) ?? memory([bucket], nothing);
      const usedMs = answer.fullAt[0]! - answer.now;
      return Math.max(0, 1 - usedMs / (bucket.burst * bucket.msPerUnit));
    },
  };
}
