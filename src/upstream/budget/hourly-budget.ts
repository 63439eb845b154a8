import type { Logger } from "../../observability/log.ts";
import type { Redis } from "../redis.ts";
import { createLedger, createRedisLedger, type Counter, type Reservation } from "./ledger.ts";

/** A replica that cannot reach Redis uses at most this part: four replicas together stay within the budget. */
const PART_WITHOUT_REDIS = 1 / 4;

/** Stands for the block of all callers whom the operator trusts. */
export const TRUSTED_BLOCK = "trusted";
/** Strangers stand behind trusted callers, so even these leave half of each budget to others. */
const TRUSTED_PART = 1 / 2;

/** A part of a budget, with limits of its own. */
export interface BudgetPart {
  readonly name: string;
  /** For all reservations in this part together. */
  readonly limit: number;
  /** For those of one address block. */
  readonly blockLimit: number;
}

/**
 * Limits what all callers together spend in any hour to `limit`, and what the callers of one address block spend to
 * `blockLimit`, those of {@link TRUSTED_BLOCK} to half of `limit`, both in the unit of the reserved amounts: over all replicas while Redis is available, in this process
 * without `redis`. A replica that cannot reach Redis allows a quarter of each limit, less what it has spent itself.
 */
export function createHourlyBudget(needs: {
  /** Distinguishes the budget from others in the same Redis. */
  name: string;
  limit: number;
  blockLimit: number;
  redis: Redis | undefined;
  log: Logger;
}) {
  const { name, limit, blockLimit, redis, log } = needs;
  const ledger = createLedger();
  const redisLedger = redis && createRedisLedger(redis, (counter) => `v2:budget:{${name}}:${counter}`);
  const all: Counter = { name: "all", limit, scope: "SERVICE" };
  let isAlone = false;
  /** What all replicas have spent, by counter, according to Redis's last answer. */
  const sums = new Map<string, number>();

  function logWhetherAlone(isAnswered: boolean): void {
    if (!isAnswered && !isAlone) {
      log.warn(
        { budget: name, limit: withoutRedis(limit), callerLimit: withoutRedis(blockLimit) },
        "until Redis answers, this replica allows a quarter of the budget and of each caller's share",
      );
    }
    isAlone = !isAnswered;
  }

  /** A counter, with what this process may spend by itself. */
  const withOwnLimit = (counter: Counter): Counter =>
    redis ? { ...counter, limit: withoutRedis(counter.limit) } : counter;

  return {
    /**
     * Reserves `amount` for a caller in the address block, or nothing if not all of it fits. The reservation also counts
     * in `part`, if given, and is then also subject to the part's limits.
     */
    async reserve(block: string, amount: number, part?: BudgetPart): Promise<Reservation> {
      // The names are those of the keys in Redis, which replicas of other versions use too.
      const counters: Counter[] = [
        {
          name: `caller:${block}`,
          limit: block === TRUSTED_BLOCK ? Math.floor(TRUSTED_PART * limit) : blockLimit,
          scope: "CALLER",
        },
        ...(part ? [toBlockCounter(part, block), toCounter(part)] : []),
        all,
      ];
      if (counters.some((counter) => counter.limit < amount)) return { shortage: { scope: "SERVICE" } };
      const inRedis = await redisLedger?.reserve(counters, amount);
      if (redis) logWhetherAlone(inRedis !== undefined);
      if (!inRedis) return ledger.reserve(counters.map(withOwnLimit), amount);
      sums.set(all.name, inRedis.sum);
      if (inRedis.shortage) return inRedis;
      // Counted here too, for the time without Redis, and because Redis may have lost what was spent: no replica
      // exceeds the limits by itself.
      const own = ledger.reserve(counters, amount);
      if (own.shortage) {
        inRedis.release(amount);
        return own;
      }
      return {
        release(unused) {
          own.release(unused);
          inRedis.release(unused);
        },
      };
    },

    /** How much of the budget, or of this part of it, is spent, 0 to 1. With Redis, as of its last answer. */
    usedPart(part?: BudgetPart): number {
      const counter = part ? toCounter(part) : all;
      if (counter.limit === 0) return 1;
      if (!redisLedger || isAlone) return ledger.reserve([counter], 0).sum / withOwnLimit(counter).limit;
      void redisLedger.reserve([counter], 0).then((answer) => {
        if (answer) sums.set(counter.name, answer.sum);
      });
      return (sums.get(counter.name) ?? 0) / counter.limit;
    },
  };
}

function toCounter({ name, limit }: BudgetPart): Counter {
  return { name: `part:${name}`, limit, scope: "SERVICE" };
}

function toBlockCounter({ name, limit, blockLimit }: BudgetPart, block: string): Counter {
  const ownLimit = block === TRUSTED_BLOCK ? limit : blockLimit;
  return { name: `part:${name}:caller:${block}`, limit: ownLimit, scope: "CALLER" };
}

/** What a replica that cannot reach Redis may use of a limit. */
export function withoutRedis(limit: number): number {
  return Math.ceil(limit * PART_WITHOUT_REDIS);
}
