import ipaddr from "ipaddr.js";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { Redis } from "../store/redis.ts";
import { createBuckets, hourlyBucket, type Bucket, type Taken } from "../store/buckets.ts";

/** Stands for the block of all callers whom the operator trusts. */
export const TRUSTED_BLOCK = "trusted";

/** Whose limit is reached: the caller's, which all callers of its address block have together, or the service's. */
export type BudgetScope = (typeof SCOPES)[number];
export const SCOPES = ["CALLER", "SERVICE"] as const;

/** Why an amount does not fit. */
export interface Shortage {
  readonly scope: BudgetScope;
  /** Whole seconds until it would fit; absent if it never does. */
  readonly retryAfterSeconds?: number;
}

/** What the callers of a budget take from. The shares are fractions of the whole budget, 0 to 1. */
export interface Pool {
  readonly name: string;
  readonly all: number;
  /** For the callers of one IPv4 /24 or IPv6 /48. */
  readonly block: number;
  /** For those of one IPv6 /32, because its owner may have many /48s. */
  readonly wideBlock: number;
  /** For all trusted callers, because strangers stand behind them. */
  readonly trusted: number;
  /** The largest amount that is taken at once: each bucket holds as much, but at most half of its limit. */
  readonly largest: number;
}

/** How much of a pool is for the first amounts of a block in an hour. */
export interface Tier {
  readonly first: number;
  readonly mayUse: number;
}

/** The fraction of its limit that a bucket holds. The rest refills in an hour. */
const BURST_FRACTION = 1 / 6;
/** What callers in no tier may use of a pool. The rest is for those who take little. */
const REST_MAY_USE = 1 / 2;

/**
 * Limits what all callers together take in any hour to `limit`, over all replicas while Redis is available. Each
 * address block, each IPv6 /32, and all trusted callers together get a share of it, at least twice what the first tier
 * has. A sixth of each limit can be taken at once; the rest flows in evenly over the hour.
 *
 * Half of what a pool holds is for blocks that have taken little within the hour. `tiers`, the smallest first, say how
 * little, and how much of the pool they may use. Trusted callers are in no tier.
 *
 * An amount can be taken from a smaller pool within the first one. It counts in both, and leaves half of the first one
 * to others.
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

  function toBucket(bucketName: string, share: number, largest: number): Bucket {
    const perHour = Math.min(limit, Math.max(share * limit, 2 * tiers[0].first));
    const burst = Math.max(1, BURST_FRACTION * perHour, Math.min(largest, perHour / 2));
    return hourlyBucket(bucketName, perHour, Math.min(burst, perHour));
  }

  /** The shares of a caller in a pool. A /32 has many owners: in it too, half is for those who take little. */
  function sharesOf({ name: pool, largest, ...shares }: Pool, block: string, mayUse: number): Bucket[] {
    if (block === TRUSTED_BLOCK) return [toBucket(`${pool}:${block}`, shares.trusted, largest)];
    const own = toBucket(`${pool}:${block}`, shares.block, largest);
    const wideBlock = toWideBlock(block);
    if (wideBlock === undefined) return [own];
    const wide = toBucket(`${pool}:${wideBlock}`, shares.wideBlock, largest / REST_MAY_USE);
    return [own, { ...wide, burst: mayUse * wide.burst }];
  }

  /** A pool. It holds the largest amount three times, if that is at most a third of its limit. */
  const poolBucket = ({ name: pool, all, largest }: Pool, mayUse = 1): Bucket => {
    const several = Math.max(largest, Math.min(3 * largest, (all * limit) / 3));
    const bucket = toBucket(pool, all, several);
    return { ...bucket, burst: mayUse * bucket.burst };
  };

  /** The sets of buckets from which a caller may take, those of the tiers first. */
  function waysOf(block: string, pool: Pool): Bucket[][] {
    const wayOf = (mayUse: number) => [
      ...sharesOf(whole, block, mayUse),
      ...(pool === whole ? [] : [...sharesOf(pool, block, mayUse), poolBucket(whole, REST_MAY_USE)]),
      poolBucket(pool, mayUse),
    ];
    const rest = wayOf(REST_MAY_USE);
    if (block === TRUSTED_BLOCK) return [rest];
    const ofTiers = tiers.map(({ first, mayUse }) => {
      const name = `${pool.name}:first${first}:${block}`;
      return [...wayOf(mayUse), hourlyBucket(name, 2 * first, first)];
    });
    return [...ofTiers, rest];
  }

  /** SERVICE if a caller who has taken nothing would have to wait too. */
  function scopeOf({ slowest, waitMs }: Taken, pool: Pool): BudgetScope {
    const empty = [whole, pool].find(({ name }) => name === slowest.name);
    const forOthersMs = empty && (poolBucket(empty).burst - slowest.burst) * slowest.msPerUnit;
    return forOthersMs !== undefined && waitMs > forOthersMs ? "SERVICE" : "CALLER";
  }

  return {
    /**
     * Takes an amount for a caller in the address block, or nothing if not all of it fits; with `least`, as much as
     * fits if that is at least so much.
     */
    async take(
      block: string,
      wanted: number,
      { least = wanted, pool = whole }: { least?: number; pool?: Pool } = {},
    ) {
      const taken: { left: number; readonly giveBack: Taken["giveBack"] }[] = [];
      let [amount, waitMs, scope]: [number, number, BudgetScope] = [0, Infinity, "SERVICE"];
      for (const way of waysOf(block, pool)) {
        const missing = wanted - amount;
        if (missing === 0) break;
        const some = await buckets.take(way, { wanted: missing, least: Math.min(least, missing) });
        if (some.amount > 0) taken.push({ left: some.amount, giveBack: some.giveBack });
        amount += some.amount;
        if (some.waitMs < waitMs) [waitMs, scope] = [some.waitMs, scopeOf(some, pool)];
      }
      const retryAfter = Number.isFinite(waitMs) ? { retryAfterSeconds: toRetryAfterSeconds(waitMs) } : {};
      return {
        amount,
        /** Why not all of it was taken. */
        shortage: amount < wanted ? ({ scope, ...retryAfter } satisfies Shortage) : undefined,
        /** Returns `unused` of the amount; may be called again for more of it. A negative one charges more. */
        giveBack(unused: number): void {
          let rest = unused;
          for (const each of taken) {
            const returned = Math.min(rest, each.left);
            each.giveBack(returned);
            each.left -= returned;
            rest -= returned;
          }
        },
      };
    },

    /** How much of what a pool holds is used, 0 to 1. */
    usedRatio: (pool: Pool = whole): Promise<number> => buckets.usedRatio(poolBucket(pool)),
  };
}

/** The IPv6 /32 around a /48. */
export function toWideBlock(block: string): string | undefined {
  if (!block.endsWith("/48")) return undefined;
  return `${ipaddr.IPv6.networkAddressFromCIDR(block.replace(/48$/, "32")).toString()}/32`;
}
