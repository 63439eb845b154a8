import type { BudgetMetrics } from "../../fairness/budget-metrics.ts";
import { createBudget, type Pool } from "../../fairness/budget.ts";
import type { Redis } from "../../store/redis.ts";
import { CollectError } from "../errors/collect-error.ts";
import type { Lamports } from "../primitives/lamports.ts";
import { BASE_FEE_LAMPORTS } from "../units/priority-fee.ts";

/** What a transaction costs and moves for one of its accounts. */
interface Cost {
  readonly fee: Lamports;
  readonly rent: Lamports;
  /** What the transaction moves to the account's address. */
  readonly moved: Lamports;
}

export type FeeBudget = ReturnType<typeof createFeeBudget>;

/**
 * Shares of the budget. With the default budget of 50,000,000 lamports, a block can use 6,055,000
 * lamports at once, and then 107,000 a minute: enough for 20 collects a minute that cost up to
 * 5,350 lamports each.
 */
const SHARES = { all: 1, block: 1 / 4, wideBlock: 1 / 4, trusted: 1 / 2 };
/** Collects that do not pay for themselves leave half of the budget to those that do. */
const SMALL_SHARES = { all: 1 / 2, block: 1 / 20, wideBlock: 1 / 8, trusted: 1 / 2 };
/**
 * An account's owner pays 2% at withdrawal, so a collect that moves 50 times its fee pays for
 * itself.
 */
const FEES_MOVED = 50n;

/**
 * Limits the fees and rents that a fee payer pays in any hour to `feeBudgetLamportsPerHour`, over
 * all replicas while Redis is up. Half of the budget is kept for the fees of address blocks that
 * have collected little; rent must fit into the other half.
 */
export function createFeeBudget(needs: {
  feePayer: string;
  feeBudgetLamportsPerHour: Lamports;
  maxPriorityFeeLamports: Lamports;
  maxRentLamports: Lamports;
  redis: Redis | undefined;
  metrics: BudgetMetrics;
}) {
  const {
    feePayer,
    feeBudgetLamportsPerHour,
    maxPriorityFeeLamports,
    maxRentLamports,
    redis,
    metrics,
  } = needs;
  // Fees are far below 2^53 lamports, so a number is exact.
  const highestFee = Number(BASE_FEE_LAMPORTS + maxPriorityFeeLamports);
  const pool: Pool = { name: "all", ...SHARES, largest: highestFee + 2 * Number(maxRentLamports) };
  const small: Pool = { name: "small", ...SMALL_SHARES, largest: highestFee };
  const budget = createBudget({
    name: `fees:${feePayer}`,
    limit: Number(feeBudgetLamportsPerHour),
    pool,
    tiers: [{ first: highestFee, mayUse: 1 }],
    redis,
  });
  metrics.watch("fees", budget.leftRatio);
  metrics.watch("small_fees", () => budget.leftRatio(small));

  return {
    /**
     * Charges a collect's cost to the first of these address blocks whose share of the budget is
     * enough: a block that has used its share must not fail the collect for the others. Returns a
     * function that gives back what was certainly not spent, and charges more for a negative
     * amount; or each block's {@link CollectError} `budget-spent` if none has enough.
     */
    async reserve({ fee, rent, moved }: Cost, blocks: readonly string[]) {
      const isSmall = moved < FEES_MOVED * fee;
      const errors = new Map<string, CollectError>();
      for (const block of blocks) {
        const share = await budget.take(block, Number(fee + rent), {
          pool: isSmall ? small : pool,
        });
        const { shortage } = share;
        if (!shortage) {
          return (unusedAmount: Lamports) => {
            share.giveBack(Number(unusedAmount));
          };
        }
        metrics.refused("fees", shortage.scope);
        errors.set(block, new CollectError({ kind: "budget-spent", isSmall, ...shortage }));
      }
      return errors;
    },
  };
}
