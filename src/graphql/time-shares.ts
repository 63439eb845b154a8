import { ContractError, retryIn, toRetryAfterSeconds } from "../contract/contract-error.ts";
import { TRUSTED_BLOCK, type BudgetScope } from "../fairness/budget.ts";
import { createLruCache } from "../store/lru-cache.ts";
import { addMs, latest, LONG_AGO, monotonicNow, msSince, msUntil } from "../time/monotonic.ts";
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

/**
 * Gives each address block a share of the process's time. One block can have thousands of addresses,
 * each within its rate limit.
 */
export function createTimeShares() {
  const shares = createLruCache<string, ReturnType<typeof createTimeShare>>(MAX_BLOCKS);
  return (block: string) => {
    const known = shares.get(block);
    if (known) return known;
    const share = createTimeShare(block === TRUSTED_BLOCK);
    shares.set(block, share);
    return share;
  };
}

/** The share of one address block. */
function createTimeShare(isTrusted: boolean) {
  /** When all that the block has taken is paid for, at its share. */
  let paidAt = LONG_AGO;
  /** How many of its operations wait. */
  let waiting = 0;

  function charge(ms: number): void {
    const earliestTime = addMs(monotonicNow(), -BURST_MS / SHARE);
    paidAt = addMs(latest(paidAt, earliestTime), ms / SHARE);
  }

  return {
    /** Resolves when it is the block's turn. Rejects with RATE_LIMITED. */
    async turn(): Promise<void> {
      if (isTrusted) return;
      for (;;) {
        const waitMs = msUntil(paidAt);
        if (waitMs <= 0) return;
        if (waitMs > MAX_WAIT_MS || waiting >= MAX_WAITING)
          throw new ContractError("RATE_LIMITED", {
            ...retryIn(
              toRetryAfterSeconds(Math.max(waitMs, MAX_WAIT_MS)),
              "You have used your share of the service's computing time for now.",
            ),
            extensions: { scope: "CALLER" satisfies BudgetScope },
          });
        waiting++;
        await sleep(Math.ceil(waitMs));
        waiting--;
      }
    },

    charge,

    /** Runs `work`, and charges the time that it takes before it returns. */
    measure<Result>(work: () => Result): Result {
      const startedAt = monotonicNow();
      try {
        return work();
      } finally {
        charge(msSince(startedAt));
      }
    },
  };
}
