import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import { afterFailure, backoffLeftMs, isBackingOff, type Backoff } from "../time/backoff.ts";
import { isOutage, isTransient, SocialError } from "./social-error.ts";
import { addMs, latest, LONG_AGO, monotonicNow, msUntil } from "../time/monotonic.ts";

const FAILURES_TO_OPEN = 5;
/** How long the circuit is open. */
const OPEN = { firstMs: 1_000, longestMs: 30_000 };
const RETRY_MS = 200;

export type CircuitBreaker = ReturnType<typeof createCircuitBreaker>;

/**
 * Refuses calls after a 429 until the reset, and while the circuit is open. Five outages in a row
 * open it for a second; then a single trial call closes it, or opens it for longer, up to 30 s.
 * Retries a broken connection or a 5xx once.
 */
export function createCircuitBreaker({ log }: { log: Logger }) {
  /** Outages in a row. */
  let outages = 0;
  /** Set while the circuit is open, and until the trial call after that succeeds. */
  let open: Backoff | undefined;
  let isTrying = false;
  /** No call is made until this time, after a 429. */
  let limitedUntil = LONG_AGO;

  /** Why a call would be refused now. */
  function refusal(): SocialError | undefined {
    const refuse = (kind: "rate-limited" | "circuit-open", leftMs: number) =>
      new SocialError({ kind, retryAfterSeconds: toRetryAfterSeconds(leftMs) });
    const limitedMs = msUntil(limitedUntil);
    if (limitedMs > 0) return refuse("rate-limited", limitedMs);
    return open && (isTrying || isBackingOff(open))
      ? refuse("circuit-open", backoffLeftMs(open))
      : undefined;
  }

  function recordLimit(retryAfterSeconds: number): void {
    if (msUntil(limitedUntil) <= 0)
      log.warn(
        { retryAfterSeconds },
        "the social network's rate limit is used up: lookups of handles that are not cached fail until its reset; if this repeats, find what else uses SOCIAL_API_TOKEN",
      );
    limitedUntil = latest(limitedUntil, addMs(monotonicNow(), retryAfterSeconds * 1_000));
  }

  function recordOutage(): void {
    if (++outages >= FAILURES_TO_OPEN) open = afterFailure(open, OPEN);
  }

  async function withRetry<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      // Another call may have received a 429.
      if (msUntil(limitedUntil) > 0) throw refusal()!;
      return call();
    }
  }

  return {
    refusal,

    /** Throws the error of `call`, or {@link SocialError} `circuit-open` or `rate-limited`. */
    async call<T>(call: () => Promise<T>): Promise<T> {
      const currentRefusal = refusal();
      if (currentRefusal) throw currentRefusal;
      const isTrial = open !== undefined;
      isTrying ||= isTrial;
      const [result] = await Promise.allSettled([withRetry(call)]);
      if (isTrial) isTrying = false;
      const error: unknown = result.status === "rejected" ? result.reason : undefined;
      const failure = error instanceof SocialError ? error.failure : undefined;
      if (failure?.kind === "rate-limited") recordLimit(failure.retryAfterSeconds);
      // Calls that began before the circuit opened do not change it.
      if (isTrial || !open) {
        if (isOutage(error)) recordOutage();
        else [outages, open] = [0, undefined];
      }
      if (result.status === "rejected") throw error;
      return result.value;
    },
  };
}
