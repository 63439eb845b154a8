import type { Logger } from "../../observability/log.ts";
import type { BudgetMetrics } from "../../upstream/budget/budget-metrics.ts";
import type { Shortage } from "../../upstream/budget/ledger.ts";
import { createSharedBudget } from "../../upstream/budget/shared-budget.ts";
import type { Redis } from "../../upstream/redis.ts";
import { CollectError } from "../collect-error.ts";
import type { Lamports } from "../lamports.ts";
import { BASE_FEE_LAMPORTS } from "../priority-fee.ts";

/**
 * The callers who may pay for a collect, in the order in which they asked, each with why its share is not enough once
 * that is known. Callers who join while a fee is being reserved are added at the end.
 */
export type Payers = Map<string, Shortage | undefined>;

export interface ReservedFee {
  /** Returns `unused` lamports to the budget; only what was certainly not spent. Negative: charges more. */
  release(unused: Lamports): void;
}

export type FeeBudget = ReturnType<typeof createFeeBudget>;

/**
 * The part of the budget that one caller may use. With the default of 50,000,000 lamports a caller that makes 20
 * collects a minute at up to 5,100 lamports is never refused, though the budget counts up to 61 minutes.
 */
const CALLER_SHARE = 1 / 8;
/** Collects that do not pay for themselves leave at least half of the budget to those that do. */
const SMALL_SHARE = 1 / 2;
/** The part that one caller's small collects may use. Nine callers leave some of the small collects' half to others. */
const SMALL_CALLER_SHARE = 1 / 20;
/** The owner pays 2% at withdrawal, so a collect that moves 50 times its fee pays for itself. */
const FEES_MOVED = 50n;

/**
 * Limits the fees and rents of all transactions of a fee payer in any hour to `budgetLamportsPerHour`, of all replicas
 * together while Redis is up. Each caller has a share, which is at least the highest fee.
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
  const toCallerLimit = (share: number) => Math.max(Math.floor(share * limit), highestFee);
  const whole = { limit, callerLimit: toCallerLimit(CALLER_SHARE) };
  const budget = createSharedBudget({ name: `fees:${feePayer}`, ...whole, redis, log });
  const small = {
    name: "small",
    limit: Math.floor(SMALL_SHARE * limit),
    callerLimit: toCallerLimit(SMALL_CALLER_SHARE),
  };
  metrics.watch("fees", budget.usedPart);
  metrics.watch("small_fees", () => budget.usedPart(small));

  return {
    /**
     * Reserves the fee of a collect that moves `moved` lamports, at the expense of the first of the payers
     * whose share is enough: a caller that has used its share must not make a collect fail for the callers
     * who join it. Throws {@link CollectError} `budget-spent`.
     */
    async reserve(
      fee: Lamports,
      { moved, payers }: { moved: Lamports; payers: Payers },
    ): Promise<ReservedFee> {
      const isSmall = moved < FEES_MOVED * fee;
      const part = isSmall ? small : undefined;
      const { limit: total, callerLimit: share } = part ?? whole;
      if (fee > Math.min(total, share)) {
        metrics.refused("fees", "SERVICE", 1);
        throw new CollectError({ kind: "budget-spent", isSmall, scope: "SERVICE" });
      }
      let shortage: Shortage | undefined;
      for (const caller of payers.keys()) {
        const reservation = await budget.reserve({ caller, amount: Number(fee), part });
        shortage = reservation.shortage;
        if (!shortage) {
          return {
            release(unused) {
              reservation.release(Number(unused));
            },
          };
        }
        metrics.refused("fees", shortage.scope, 1);
        payers.set(caller, shortage);
        if (shortage.scope === "SERVICE") break;
      }
      if (!shortage) throw new Error("nobody asked for this collect");
      throw new CollectError({ kind: "budget-spent", isSmall, ...shortage });
    },
  };
}
