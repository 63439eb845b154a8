import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import { afterFailure, backoffLeftMs, isBackingOff, type Backoff } from "../time/backoff.ts";
import { isOutage, isTransient, SocialError } from "./social-error.ts";
import { addMs, latest, LONG_AGO, monotonicNow, msUntil, toIsoTime } from "../time/monotonic.ts";

const FAILURES_TO_OPEN = 5;
/** How long the circuit is open. */
const OPEN = { firstMs: 1_000, longestMs: 30_000 };
const RETRY_MS = 200;

export type CircuitBreaker = ReturnType<typeof createCircuitBreaker>;

/**
 * Refuses calls after a 429 until the reset, and while the circuit is open. Five outages in a row
 * open it for a second; then a single trial call closes it, or opens it for longer, up to 30 s.
 * Calls that began while the circuit was closed change only a closed circuit. Retries a broken
 * connection or a 5xx once.
 */
export function createCircuitBreaker({ log }: { log: Logger }) {
  /** In a row, while the circuit is closed. */
  let outages = 0;
  /** Undefined while the circuit is closed. */
  let open: { readonly backoff: Backoff; readonly lastOutage: SocialError } | undefined;
  let isOnTrial = false;
  /** No call is made until this time, after a 429. */
  let limitedUntil = LONG_AGO;

  /** Why a call would be refused now because of a 429. */
  function limitRefusal(): SocialError | undefined {
    const limitedMs = msUntil(limitedUntil);
    const retryAfterSeconds = toRetryAfterSeconds(limitedMs);
    return limitedMs > 0 ? new SocialError({ kind: "rate-limited", retryAfterSeconds }) : undefined;
  }

  /** Why a call would be refused now. */
  function refusal(): SocialError | undefined {
    const limit = limitRefusal();
    const leftMs = backoffLeftMs(open?.backoff);
    if (limit || !open || !(isOnTrial || leftMs > 0)) return limit;
    const retryAfterSeconds = toRetryAfterSeconds(leftMs);
    return new SocialError({ kind: "circuit-open", retryAfterSeconds }, open.lastOutage);
  }

  function recordLimit(retryAfterSeconds: number): void {
    if (msUntil(limitedUntil) <= 0)
      log.warn(
        { retryAfterSeconds },
        "the social network's rate limit is used up: lookups of handles that are not cached fail until its reset; if this repeats, find what else uses SOCIAL_API_TOKEN",
      );
    limitedUntil = latest(limitedUntil, addMs(monotonicNow(), retryAfterSeconds * 1_000));
  }

  function record(error: unknown): void {
    if (!isOutage(error)) [outages, open] = [0, undefined];
    else if (open || ++outages >= FAILURES_TO_OPEN)
      open = { backoff: afterFailure(open?.backoff, OPEN), lastOutage: error };
  }

  async function withRetry<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      // Another call may have received a 429.
      const limit = limitRefusal();
      if (limit) throw limit;
      return call();
    }
  }

  return {
    refusal,

    /** For the operator. `openUntil` and `lastError`: absent while the circuit is closed. */
    describe: () => ({
      circuit: !open ? "closed" : isBackingOff(open.backoff) ? "open" : "half-open",
      openUntil: open && toIsoTime(open.backoff.endsAt),
      lastError: open?.lastOutage.message,
      limitedUntil: msUntil(limitedUntil) > 0 ? toIsoTime(limitedUntil) : undefined,
    }),

    /** Throws the error of `call`, or {@link SocialError} `circuit-open` or `rate-limited`. */
    async call<T>(call: () => Promise<T>): Promise<T> {
      const currentRefusal = refusal();
      if (currentRefusal) throw currentRefusal;
      const isTrial = open !== undefined;
      isOnTrial = isTrial;
      let error: unknown;
      try {
        return await withRetry(call);
      } catch (thrown) {
        error = thrown;
        const failure = thrown instanceof SocialError ? thrown.failure : undefined;
        if (failure?.kind === "rate-limited") recordLimit(failure.retryAfterSeconds);
        throw thrown;
      } finally {
        if (isTrial) isOnTrial = false;
        if (isTrial || !open) record(error);
      }
    },
  };
}
