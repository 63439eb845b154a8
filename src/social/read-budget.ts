import type { Logger } from "../observability/log.ts";
import type { BudgetMetrics } from "../upstream/budget/budget-metrics.ts";
import type { Redis } from "../upstream/redis.ts";
import { createSharedBudget } from "../upstream/budget/shared-budget.ts";
import type { SocialAccount } from "./account.ts";
import { SocialError } from "./social-error.ts";

/**
 * The part of `readsPerHour` that one caller may use. With the default of 10,000 a caller that reads 2,000 an hour
 * is never refused, though the budget counts up to 61 minutes, and four callers leave some for others.
 */
const CALLER_SHARE = 0.22;

/** Which keys may be read. */
interface PaidKeys {
  readonly paid: readonly string[];
  /** The error of the other keys. */
  readonly refusal?: SocialError;
  /** Call it once for each paid key, with the answer if the network was asked because of this caller. */
  readonly onEnd: (answer?: SocialAccount | Error) => void;
}

export type ReadBudget = ReturnType<typeof createReadBudget>;

/**
 * Limits the accounts read from the network, which charges for each that it returns, to `readsPerHour` (0:
 * unlimited), of all replicas together. Each caller has a share. Accounts that do not exist are free.
 */
export function createReadBudget({
  readsPerHour,
  apiUrl,
  redis,
  metrics,
  log,
}: {
  readsPerHour: number;
  apiUrl: URL;
  redis?: Redis | undefined;
  metrics?: BudgetMetrics | undefined;
  log: Logger;
}) {
  const budget =
    readsPerHour > 0
      ? createSharedBudget({
          name: `social-reads:${apiUrl.host}`,
          limit: readsPerHour,
          callerLimit: Math.ceil(CALLER_SHARE * readsPerHour),
          redis,
          log,
        })
      : undefined;
  if (budget) metrics?.watch("social_reads", budget.usedPart);

  /** Reserves reads of the keys for a caller, or of only the first ones if not all fit. */
  return async (keys: readonly string[], caller: string): Promise<PaidKeys> => {
    if (!budget || keys.length === 0) return { paid: keys, onEnd: () => undefined };
    const reservation = await budget.reserve({ caller, amount: keys.length, least: 1 });
    const paid = keys.slice(0, reservation.amount);
    let unused = 0;
    const onEnd: PaidKeys["onEnd"] = (answer) => {
      if (answer && isCharged(answer)) return;
      // Most keys of a request end at the same time: release them together.
      if (unused++ > 0) return;
      queueMicrotask(() => {
        reservation.release(unused);
        unused = 0;
      });
    };
    const { shortage } = reservation;
    if (!shortage) return { paid, onEnd };
    metrics?.refused("social_reads", shortage.scope, keys.length - paid.length);
    return { paid, onEnd, refusal: new SocialError({ kind: "budget-used", ...shortage }) };
  };
}

/** The network charges for each account that it returns, readable or not. */
function isCharged(answer: SocialAccount | Error): boolean {
  return (
    !(answer instanceof Error) || (answer instanceof SocialError && answer.failure.kind === "unreadable")
  );
}
