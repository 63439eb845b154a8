import type { Logger } from "../../observability/log.ts";
import type { BudgetMetrics } from "../../upstream/budget/budget-metrics.ts";
import { createHourlyBudget } from "../../upstream/budget/hourly-budget.ts";
import type { Shortage } from "../../upstream/budget/ledger.ts";
import type { Redis } from "../../upstream/redis.ts";
import { CollectError } from "../collect-error.ts";
import type { Lamports } from "../lamports.ts";
import { BASE_FEE_LAMPORTS } from "../priority-fee.ts";

/**
 * The address blocks whose parts of the budget may pay for a collect, in the order in which they asked, each with why
 * its part is not enough once that is known. Blocks that join while a fee is being reserved are added at the end.
 */
export type Payers = Map<string, Shortage | undefined>;

export interface ReservedFee {
  /** Returns `unused` lamports to the budget; only what was certainly not spent. Negative: charges more. */
  release(unused: Lamports): void;
}

export type FeeBudget = ReturnType<typeof createFeeBudget>;

/**
 * The part of the budget that one block may use. With the default of 50,000,000 lamports a block that makes 20 collects
 * a minute at up to 5,100 lamports is never refused, though the budget counts up to 61 minutes.
 */
const BLOCK_PART = 1 / 8;
/** Collects that do not pay for themselves leave at least half of the budget to those that do. */
const SMALL_PART = 1 / 2;
/** The part that one block's small collects may use. Nine blocks leave some of the small collects' half to others. */
const SMALL_BLOCK_PART = 1 / 20;
/** The owner pays 2% at withdrawal, so a collect that moves 50 times its fee pays for itself. */
const FEES_MOVED = 50n;

/**
 * Limits the fees and rents of all transactions of a fee payer in any hour to `budgetLamportsPerHour`, of all replicas
 * together while Redis is up. Each block has a part of it, which is at least the highest fee.
 */
export function createFeeBudget({
  feePayer,
  budgetLamportsPerHour,
  maxPriorityFee,
  redis,
  metrics,
  log,
}: {
  feePayer: string;
  budgetLamportsPerHour: Lamports;
  maxPriorityFee: Lamports;
  redis: Redis | undefined;
  metrics: BudgetMetrics;
  log: Logger;
}) {
  // Lamports of fees are far below 2^53.
  const limit = Number(budgetLamportsPerHour);
  const highestFee = Number(BASE_FEE_LAMPORTS + maxPriorityFee);
  const toBlockLimit = (part: number) => Math.max(Math.floor(part * limit), highestFee);
  const budget = createHourlyBudget({
    name: `fees:${feePayer}`,
    limit,
    blockLimit: toBlockLimit(BLOCK_PART),
    redis,
    log,
  });
  const small = {
    name: "small",
    limit: Math.floor(SMALL_PART * limit),
    blockLimit: toBlockLimit(SMALL_BLOCK_PART),
  };
  metrics.watch("fees", budget.usedPart);
  metrics.watch("small_fees", () => budget.usedPart(small));

  return {
    /**
     * Reserves the fee of a collect that moves `moved` lamports, at the expense of the first of the payers whose part
     * is enough: a block that has used its part must not make a collect fail for the callers who join it. Throws
     * {@link CollectError} `budget-spent`.
     */
    async reserve(
      fee: Lamports,
      { moved, payers }: { moved: Lamports; payers: Payers },
    ): Promise<ReservedFee> {
      const isSmall = moved < FEES_MOVED * fee;
      const part = isSmall ? small : undefined;
      let shortage: Shortage | undefined;
      for (const block of payers.keys()) {
        const reservation = await budget.reserve(block, Number(fee), part);
        if (!reservation.shortage) {
          return {
            release(unused) {
              reservation.release(Number(unused));
            },
          };
        }
        shortage = reservation.shortage;
        metrics.refused("fees", shortage.scope, 1);
        payers.set(block, shortage);
        if (shortage.scope === "SERVICE") break;
      }
      if (!shortage) throw new Error("nobody asked for this collect");
      throw new CollectError({ kind: "budget-spent", isSmall, ...shortage });
    },
  };
}
