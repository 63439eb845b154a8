import type { BudgetMetrics } from "../fairness/budget-metrics.ts";
import { createBudget } from "../fairness/budget.ts";
import type { Redis } from "../store/redis.ts";
import type { SocialAccount } from "./account.ts";
import { SocialError } from "./social-error.ts";

/**
 * Fractions of the budget. By default, an IPv4 /24 may read at most 416 names at once, then one
 * every 1.7 seconds.
 */
const SHARES = { all: 1, block: 1 / 4, wideBlock: 1 / 8, trusted: 1 };
/**
 * The fewer names a block reads, the more of the budget it may use. People read a few names, bots a
 * few hundred.
 */
const TIERS = [
  { first: 3, mayUse: 1 },
  { first: 200, mayUse: 2 / 3 },
] as const;

export type ReadBudget = ReturnType<typeof createReadBudget>;

/**
 * Limits account reads to `socialReadsPerHour` (0: unlimited) over all replicas. Accounts that do
 * not exist are free.
 */
export function createReadBudget(needs: {
  socialReadsPerHour: number;
  socialApiUrl: URL;
  redis?: Redis | undefined;
  metrics?: BudgetMetrics | undefined;
}) {
  const { socialReadsPerHour, socialApiUrl, redis, metrics } = needs;
  const budget = createBudget({
    name: `reads:${socialApiUrl.host}`,
    limit: socialReadsPerHour,
    pool: { name: "all", ...SHARES, largest: TIERS[0].first },
    tiers: TIERS,
    redis,
  });
  if (socialReadsPerHour > 0) metrics?.watch("social_reads", budget.leftRatio);

  /** Reserves the wanted reads for an address block, or as many of them as fit. */
  return async (wantedReads: number, addressBlock: string) => {
    const share =
      socialReadsPerHour > 0 && (await budget.take(addressBlock, wantedReads, { least: 1 }));
    return {
      paid: share ? share.amount : wantedReads,
      /** Returns the error of a read that is not paid. */
      refuse(): SocialError {
        // Each bucket holds at least one account, so a shortage always has a time.
        const { scope = "SERVICE", retryAfterSeconds = 1 } = { ...(share && share.shortage) };
        metrics?.refused("social_reads", scope);
        return new SocialError({ kind: "budget-used", scope, retryAfterSeconds });
      },
      /** Gives back what the reads with these answers, the paid ones, did not cost. */
      settle(answers: readonly (SocialAccount | Error | undefined)[]): void {
        if (share) share.giveBack(share.amount - answers.filter(isCharged).length);
      },
    };
  };
}

/**
 * Whether the network charges for an answer. It charges for each account that it returns, readable
 * or not.
 */
function isCharged(answer: SocialAccount | Error | undefined): boolean {
  if (answer instanceof SocialError) return answer.failure.kind === "unreadable";
  return answer !== undefined && !(answer instanceof Error);
}
