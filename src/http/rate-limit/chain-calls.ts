import { ContractError, toRetryAfterSeconds } from "../../contract/contract-error.ts";
import type { BudgetMetrics } from "../../fairness/budget-metrics.ts";
import { toWideBlock, TRUSTED_BLOCK } from "../../fairness/budget.ts";
import { createBuckets } from "../../store/buckets.ts";
import type { Redis } from "../../store/redis.ts";

/**
 * The callers of one block, or of one IPv6 /32, together get a quarter of the RPC plan that the
 * README recommends.
 */
const CALLS_PER_SECOND = 55 / 4;
/** The calls of this many seconds may be made at once. */
const BURST_SECONDS = 10;

/**
 * Takes calls from an address block's budget. Rejects with ContractError SERVICE_BUSY if too few
 * are left.
 */
export type TakeChainCalls = (addressBlock: string, calls: number) => Promise<void>;

/**
 * Limits large operations' calls to the chain: many balances in each request could use up the RPC
 * plan.
 */
export function createChainCalls(needs: {
  redis: Redis | undefined;
  metrics: BudgetMetrics;
}): TakeChainCalls {
  const { redis, metrics } = needs;
  const buckets = createBuckets({ name: "chain-calls", redis });
  const capacity = CALLS_PER_SECOND * BURST_SECONDS;
  const toBucket = (name: string) => ({
    name,
    capacity,
    burst: capacity,
    msPerUnit: 1_000 / CALLS_PER_SECOND,
  });

  return async (addressBlock, calls) => {
    if (addressBlock === TRUSTED_BLOCK) return;
    const owners = [addressBlock, toWideBlock(addressBlock)].filter((owner) => owner !== undefined);
    const { amount, waitMs } = await buckets.take(owners.map(toBucket), { wanted: calls });
    if (amount === calls) return;
    metrics.refused("chain_calls", "CALLER", calls);
    throw new ContractError("SERVICE_BUSY", {
      message: `You have used your share of the service's calls to the chain. Try again in ${toRetryAfterSeconds(waitMs)} seconds, or read fewer balances in one request.`,
      extensions: { scope: "CALLER" },
    });
  };
}
