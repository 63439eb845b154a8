import { createLruCache } from "../../store/lru-cache.ts";
import { monotonicNow, type MonotonicTime, msSince } from "../../time/monotonic.ts";
import type { CollectError } from "../errors/collect-error.ts";

/** How long a failed simulation is remembered: then the collect is tried again. */
const REMEMBERED_MS = 10_000;
/** An entry takes some 500 bytes. Adding one requires a simulation. */
const MAX_FAILURES = 10_000;

interface Failure {
  readonly amount: bigint;
  readonly error: CollectError;
  readonly at: MonotonicTime;
}

export type FailedSimulations = ReturnType<typeof createFailedSimulations>;

/**
 * Remembers failed simulations for ten seconds: a coin's sweep, the AMM's transfer, or the collect
 * of vaults without coins. Until then, collects answer the same error without a simulation. What
 * fails is tried again as soon as its amount changes.
 */
export function createFailedSimulations() {
  const failures = createLruCache<string, Failure>(MAX_FAILURES);

  return {
    failed(id: string, amount: bigint, error: CollectError): void {
      failures.set(id, { amount, error, at: monotonicNow() });
    },
    /** Returns the error of the last simulation of this amount, within ten seconds. */
    errorOf(id: string, amount: bigint): CollectError | undefined {
      const failure = failures.get(id);
      const isCurrent = failure?.amount === amount && msSince(failure.at) < REMEMBERED_MS;
      return isCurrent ? failure.error : undefined;
    },
  };
}
