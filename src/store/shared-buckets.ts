import type { Redis } from "./redis.ts";
import { createMemoryBuckets, createRedisBuckets, type Answer, type Bucket, type Wanted } from "./bucket.ts";

/** A replica that cannot reach Redis takes this part of a bucket: four replicas together stay within it. */
const PART_WITHOUT_REDIS = 1 / 4;
/** How soon Redis may be back, for an amount that fits only then. */
const RETRY_WITHOUT_REDIS_MS = 30_000;
/** Longer than any debt. */
const FOREVER_MS = 1e15;

/** To see how full a bucket is. */
const NOTHING: Wanted = { wanted: 0, least: 0, aheadMs: 0 };

/** What was taken, and why not more. */
export interface Taken {
  readonly amount: number;
  /** Until what was taken has flowed in, or if not all was, until `least` more fits; Infinity if it never does. */
  readonly waitMs: number;
  /** The bucket that sets `waitMs`. */
  readonly slowest: Bucket;
  /** Returns `unused` of the amount; may be called again for further parts. A negative part charges more. */
  giveBack(unused: number): void;
}

/**
 * Buckets of all replicas, in Redis; without `redis` those of this process. While a replica cannot reach Redis it
 * takes at most a quarter (`partWithoutRedis`) of what each bucket allows, less what it has taken before. What it takes
 * in Redis also counts in its memory: if Redis loses it, no replica takes more than a bucket allows.
 */
export function createSharedBuckets(needs: {
  /** Distinguishes these buckets from others in the same Redis. */
  name: string;
  redis: Redis | undefined;
  partWithoutRedis?: number;
  /** Called when Redis stops answering. */
  onRedisAway?: () => void;
}) {
  const { name, redis, partWithoutRedis: part = PART_WITHOUT_REDIS, onRedisAway } = needs;
  const memory = createMemoryBuckets();
  const inRedis = redis && createRedisBuckets(redis, name);
  let isRedisAway = false;
  /** For metrics: how long until a bucket is full, by Redis's last answer, and when that came. */
  const lacks = new Map<string, { ms: number; at: number }>();

  function keepLacks(buckets: readonly Bucket[], { taken, now, fullAt }: Answer): void {
    buckets.forEach((bucket, i) => {
      const lack = lacks.get(bucket.name);
      if (!lack) return;
      lack.ms = fullAt[i]! - now + taken * bucket.msPerUnit;
      lack.at = performance.now();
    });
  }

  return {
    /**
     * Takes as much of `wanted` as all the buckets have, but nothing if that is less than `least`; `aheadMs`: also
     * what flows in within this time.
     */
    async take(
      buckets: readonly Bucket[],
      { wanted, least = wanted, aheadMs = 0 }: { wanted: number; least?: number; aheadMs?: number },
    ): Promise<Taken> {
      const nothing = { amount: 0, giveBack: () => undefined };
      const tooSmall = buckets.find(({ burst }) => burst < least);
      if (tooSmall) return { ...nothing, waitMs: Infinity, slowest: tooSmall };

      /** Of all replicas; `local` is of this one. */
      const all = await inRedis?.take(buckets, { wanted, least, aheadMs });
      if (redis && !all && !isRedisAway) onRedisAway?.();
      isRedisAway = redis !== undefined && !all;
      if (all) keepLacks(buckets, all);
      if (all?.taken === 0) return { ...nothing, ...reasonOf(buckets, all) };

      const localBuckets = isRedisAway
        ? buckets.map(({ name, burst, msPerUnit }) => ({
            name,
            burst: burst * part,
            msPerUnit: msPerUnit / part,
          }))
        : buckets;
      const localWanted = all?.taken ?? wanted;
      const local = memory.take(localBuckets, {
        wanted: localWanted,
        least: Math.min(least, localWanted),
        aheadMs,
      });
      if (all && local.taken < all.taken) inRedis!.giveBack(buckets, all.taken - local.taken, all.fullAt);
      if (local.taken === 0 && localBuckets.some(({ burst }) => burst < least))
        return { ...nothing, waitMs: RETRY_WITHOUT_REDIS_MS, slowest: buckets[local.slowest]! };
      return {
        amount: local.taken,
        ...reasonOf(buckets, all && local.taken === all.taken ? all : local),
        giveBack(unused) {
          if (unused === 0) return;
          if (unused > 0) {
            memory.giveBack(localBuckets, unused, local.fullAt);
            if (all) inRedis!.giveBack(buckets, unused, all.fullAt);
          } else {
            const charge = { wanted: -unused, least: -unused, aheadMs: FOREVER_MS };
            memory.take(localBuckets, charge);
            if (all) void inRedis!.take(buckets, charge);
          }
        },
      };
    },

    /** How much of a bucket is used, 0 to 1. With Redis, as of its last answer. Call at each scrape. */
    usedPart(bucket: Bucket): number {
      if (bucket.burst === 0) return 1;
      const now = performance.now();
      let lackMs: number;
      if (inRedis && !isRedisAway) {
        const lack = lacks.get(bucket.name) ?? { ms: 0, at: now };
        lacks.set(bucket.name, lack);
        lackMs = lack.ms - (now - lack.at);
        void inRedis.take([bucket], NOTHING).then((answer) => {
          if (answer) keepLacks([bucket], answer);
        });
      } else {
        const answer = memory.take([bucket], NOTHING);
        lackMs = answer.fullAt[0]! - answer.now;
      }
      return Math.min(1, Math.max(0, lackMs / (bucket.burst * bucket.msPerUnit)));
    },
  };
}

const reasonOf = (buckets: readonly Bucket[], { waitMs, slowest }: Answer) => ({
  waitMs,
  slowest: buckets[slowest]!,
});
