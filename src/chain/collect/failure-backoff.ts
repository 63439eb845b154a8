import { LRUCache } from "lru-cache";
import { ContractError, toRetryAfterSeconds } from "../../contract/contract-error.ts";

/** How long an account rests after its first failure in a row; after each further one twice as long, up to the longest; forgotten an hour after it. */
const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;
/** Whoever makes this one forget an account has paid for as many failures, and so has the budget. */
const MAX_ACCOUNTS = 10_000;

/**
 * Lets accounts rest whose transactions fail on the chain after a simulation that did not: such a failure
 * costs its fee, and whoever can bring one about can do it again.
 */
export function createFailurePauses() {
  const pauses = new LRUCache<string, { readonly ms: number; readonly endsAt: number }>({
    max: MAX_ACCOUNTS,
  });

  return {
    /** @throws {ContractError} COLLECT_FAILED while the account rests. */
    assertRested(address: string): void {
      const leftMs = (pauses.get(address)?.endsAt ?? 0) - performance.now();
      if (leftMs <= 0) return;
      throw new ContractError("COLLECT_FAILED", {
        message: `This account's last transaction failed on the chain, though its simulation did not. No other was sent: try again in ${toRetryAfterSeconds(leftMs)} seconds.`,
      });
    },

    failed(address: string): void {
      const last = pauses.get(address);
      const ms = last ? Math.min(2 * last.ms, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
      pauses.set(address, { ms, endsAt: performance.now() + ms }, { ttl: ms + LONGEST_PAUSE_MS });
    },

    /** It has collected: what failed before is forgotten. */
    succeeded(address: string): void {
      pauses.delete(address);
    },
  };
}
