import ipaddr from "ipaddr.js";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { Redis } from "../store/redis.ts";
import { createBuckets, hourlyBucket, type Bucket, type Taken } from "../store/buckets.ts";

/** The address block that stands for all trusted callers. */
export const TRUSTED_BLOCK = "trusted";

/** Whose limit is reached: that of the caller's address block, or that of the service. */
export type BudgetScope = (typeof SCOPES)[number];
export const SCOPES = ["CALLER", "SERVICE"] as const;

/** Why an amount is not available. */
export interface Shortage {
  readonly scope: BudgetScope;
  /** Whole seconds until the amount is available; absent if it never will be. */
  readonly retryAfterSeconds?: number;
}

/**
 * A budget, or a part of it. `all`, `block`, `wideBlock` and `trusted` are fractions of the
 * budget's limit, 0 to 1.
 */
export interface Pool {
  readonly name: string;
  readonly all: number;
  /** For all callers from one IPv4 /24 or IPv6 /48. */
  readonly block: number;
  /** For all callers from one IPv6 /32, because the /32's owner may have many /48s. */
  readonly wideBlock: number;
  /** For all trusted callers together, because each acts for many strangers. */
  readonly trusted: number;
  /** Each bucket holds at least this much, or half of its limit if that is less. */
  readonly largest: number;
}

/**
 * An address block may use the fraction `mayUse` of a pool for the first `first` units that it
 * takes in an hour.
 */
export interface Tier {
  readonly first: number;
  readonly mayUse: number;
}

/** A bucket holds this fraction of its limit. */
const BURST_FRACTION = 1 / 6;
/** The fraction of a pool that callers in no tier may use. */
const REST_MAY_USE = 1 / 2;

/**
 * Limits what all callers take in any hour to `limit`, over all replicas while Redis is available.
 * Each address block, each IPv6 /32, and the group of all trusted callers has its own limit: a
 * share of `limit`, but at least twice the `first` of the first tier. At least a sixth of each
 * limit is available at once; the rest refills evenly in an hour.
 *
 * Half of a pool is reserved for blocks that have taken little within the hour. `tiers`, the
 * smallest first, define what is little, and how much of the pool such a block may use. Trusted
 * callers are in no tier. If `take` gets another pool, it also takes the units from `pool`, and
 * uses at most half of `pool`.
 */
export function createBudget(needs: {
  /** Distinguishes the budget from others in the same Redis. */
  name: string;
  limit: number;
  pool: Pool;
  tiers: readonly [Tier, ...Tier[]];
  redis: Redis | undefined;
}) {
  const { limit, pool: whole, tiers } = needs;
  const buckets = createBuckets(needs);

  function toBucket(bucketName: string, share: number, largest: number, mayUse = 1): Bucket {
    const perHour = Math.min(limit, Math.max(share * limit, 2 * tiers[0].first));
    const burst = Math.max(1, BURST_FRACTION * perHour, Math.min(largest, perHour / 2));
    const bucket = hourlyBucket(bucketName, perHour, Math.min(burst, perHour));
    return { ...bucket, burst: mayUse * bucket.burst };
  }

  /**
   * Returns the buckets of a block and its /32. Half of the /32's bucket is reserved for blocks
   * that take little.
   */
  function sharesOf(
    { name: pool, largest, ...shares }: Pool,
    block: string,
    mayUse: number,
  ): Bucket[] {
    const share = block === TRUSTED_BLOCK ? shares.trusted : shares.block;
    const own = toBucket(`${pool}:${block}`, share, largest);
    const wide = toWideBlock(block);
    if (wide === undefined) return [own];
    return [own, toBucket(`${pool}:${wide}`, shares.wideBlock, largest / REST_MAY_USE, mayUse)];
  }

  /**
   * The bucket of a pool. It holds at least three times `largest`, or a third of the pool's limit
   * if that is less.
   */
  const poolBucket = ({ name: pool, all, largest }: Pool, mayUse = 1): Bucket =>
    toBucket(pool, all, Math.max(largest, Math.min(3 * largest, (all * limit) / 3)), mayUse);

  /**
   * Returns sets of buckets, the tiers' sets first. A unit is taken from every bucket of the first
   * set with room.
   */
  function waysOf(block: string, pool: Pool): Bucket[][] {
    const wayOf = (mayUse: number) =>
      [...new Set([whole, pool])].flatMap((each) => [
        ...sharesOf(each, block, mayUse),
        poolBucket(each, each === pool ? mayUse : REST_MAY_USE),
      ]);
    const ofTiers = (block === TRUSTED_BLOCK ? [] : tiers).map(({ first, mayUse }) => {
      const name = `${pool.name}:first${first}:${block}`;
      return [...wayOf(mayUse), hourlyBucket(name, 2 * first, first)];
    });
    return [...ofTiers, wayOf(REST_MAY_USE)];
  }

  /** Returns SERVICE if even a caller that has taken nothing would have to wait. */
  function scopeOf({ slowest, waitMs }: Taken, pool: Pool): BudgetScope {
    const empty = [whole, pool].find(({ name }) => name === slowest.name);
    const forOthersMs = empty && (poolBucket(empty).burst - slowest.burst) * slowest.msPerUnit;
    return forOthersMs !== undefined && waitMs > forOthersMs ? "SERVICE" : "CALLER";
  }

  return {
    /**
     * Takes `units`, or as many as are available if these are at least `least`; otherwise none.
     */
    async take(
      block: string,
      units: number,
      { least = units, pool = whole }: { least?: number; pool?: Pool } = {},
    ) {
      const parts: { amount: number; readonly giveBack: Taken["giveBack"] }[] = [];
      let missing = units;
      /** The part that is available again first. */
      let soonest: Taken | undefined;
      for (const way of waysOf(block, pool)) {
        if (missing === 0) break;
        const part = await buckets.take(way, { wanted: missing, least: Math.min(least, missing) });
        if (part.amount > 0) parts.push({ ...part });
        missing -= part.amount;
        if (part.waitMs < (soonest?.waitMs ?? Infinity)) soonest = part;
      }
      const shortage: Shortage = soonest
        ? {
            scope: scopeOf(soonest, pool),
            retryAfterSeconds: toRetryAfterSeconds(soonest.waitMs),
          }
        : { scope: "SERVICE" };
      return {
        amount: units - missing,
        /** Why fewer than `units` were taken; undefined if all were. */
        shortage: missing > 0 ? shortage : undefined,
        /** Returns unused units; may be called several times. A negative number charges more. */
        giveBack(unusedUnits: number): void {
          let rest = unusedUnits;
          for (const part of parts) {
            const some = Math.min(rest, part.amount);
            part.giveBack(some);
            part.amount -= some;
            rest -= some;
          }
        },
      };
    },

    /** The fraction that is left, 0 to 1, of what callers in no tier may take of a pool. */
    leftRatio: (pool: Pool = whole): Promise<number> =>
      buckets.leftRatio(poolBucket(pool, REST_MAY_USE)),
  };
}

/** Returns the IPv6 /32 that contains an IPv6 /48; undefined for any other block. */
export function toWideBlock(block: string): string | undefined {
  if (!block.endsWith("/48")) return undefined;
  return `${ipaddr.IPv6.networkAddressFromCIDR(block.replace(/48$/, "32")).toString()}/32`;
}
