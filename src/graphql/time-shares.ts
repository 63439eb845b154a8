import { ContractError, retryIn, toRetryAfterSeconds } from "../contract/contract-error.ts";
import { TRUSTED_BLOCK, type BudgetScope } from "../fairness/budget.ts";
import { createLruCache } from "../store/lru-cache.ts";
import {
  addMs,
  latest,
  LONG_AGO,
  monotonicNow,
  msSince,
  msUntil,
  type MonotonicTime,
} from "../time/monotonic.ts";
import { sleep } from "../time/sleep.ts";

/** The part of the process's time that the operations of one address block may take. */
const SHARE = 1 / 4;
/** A block that has been idle may take this much at once. */
const BURST_MS = 250;
/** How long an operation waits for its block's turn at most. */
const MAX_WAIT_MS = 5_000;
/** Each waiting operation keeps its body. */
const MAX_WAITING = 50;
const MAX_BLOCKS = 10_000;

interface Account {
  /** When all that the block has taken is paid for, at its share. */
  paidAt: MonotonicTime;
  /** How many of its operations wait. */
  waiting: number;
}

/**
 * Gives each address block a share of the process's time. One block can have thousands of addresses,
 * each within its rate limit.
 */
export function createTimeShares() {
  const accounts = createLruCache<string, Account>(MAX_BLOCKS);

  function accountOf(block: string): Account {
    const known = accounts.get(block);
    if (known) return known;
    const account = { paidAt: LONG_AGO, waiting: 0 };
    accounts.set(block, account);
    return account;
  }

  function charge(block: string, ms: number): void {
    const account = accountOf(block);
    const earliestTime = addMs(monotonicNow(), -BURST_MS / SHARE);
    account.paidAt = addMs(latest(account.paidAt, earliestTime), ms / SHARE);
  }

  return {
    /** Resolves when it is the block's turn. Rejects with RATE_LIMITED. */
    async turn(block: string): Promise<void> {
      if (block === TRUSTED_BLOCK) return;
      const account = accountOf(block);
      for (;;) {
        const waitMs = msUntil(account.paidAt);
        if (waitMs <= 0) return;
        if (waitMs > MAX_WAIT_MS || account.waiting >= MAX_WAITING)
          throw new ContractError("RATE_LIMITED", {
            ...retryIn(
              toRetryAfterSeconds(Math.max(waitMs, MAX_WAIT_MS)),
              "You have used your share of the service's computing time for now.",
            ),
            extensions: { scope: "CALLER" satisfies BudgetScope },
          });
        account.waiting++;
        await sleep(Math.ceil(waitMs));
        account.waiting--;
      }
    },

    charge,

    /** Runs `work`, and charges the time that it takes before it returns. */
    measure<Result>(block: string, work: () => Result): Result {
      const startedAt = monotonicNow();
      try {
        return work();
      } finally {
        charge(block, msSince(startedAt));
      }
    },
  };
}
