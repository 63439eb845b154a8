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
 * - closed: calls are made. The fifth outage in a row opens the circuit.
 * - open: calls are refused until the backoff ends. The next call is the trial.
 * - on trial: all other calls are refused. An outage opens the circuit for longer; any other result
 *   of the trial closes it.
 *
 * Calls that began while the circuit was closed change only a closed circuit.
 */
type Circuit =
  | { readonly kind: "closed"; /** In a row. */ readonly outages: number }
  | {
      readonly kind: "open" | "on-trial";
      readonly backoff: Backoff;
      readonly lastOutage: SocialError;
    };

const CLOSED: Circuit = { kind: "closed", outages: 0 };

/**
 * Refuses calls after a 429 until the reset, and while the circuit is open. Five outages in a row
 * open it for a second; then a single trial call closes it, or opens it for longer, up to 30 s.
 * Retries a broken connection or a 5xx once.
 */
export function createCircuitBreaker({ log }: { log: Logger }) {
  let circuit: Circuit = CLOSED;
  /** No call is made until this time, after a 429. */
  let limitedUntil = LONG_AGO;

  const refuse = (
    kind: "rate-limited" | "circuit-open",
    leftMs: number,
    cause?: SocialError,
  ): SocialError =>
    new SocialError({ kind, retryAfterSeconds: toRetryAfterSeconds(leftMs) }, cause);

  /** Why a call would be refused now because of a 429. */
  function limitRefusal(): SocialError | undefined {
    const limitedMs = msUntil(limitedUntil);
    return limitedMs > 0 ? refuse("rate-limited", limitedMs) : undefined;
  }

  /** Why a call would be refused now. */
  function refusal(): SocialError | undefined {
    const limit = limitRefusal();
    if (limit) return limit;
    switch (circuit.kind) {
      case "closed":
        return undefined;
      case "open":
        if (!isBackingOff(circuit.backoff)) return undefined;
        return refuse("circuit-open", backoffLeftMs(circuit.backoff), circuit.lastOutage);
      case "on-trial":
        return refuse("circuit-open", 0, circuit.lastOutage);
    }
  }

  function recordLimit(retryAfterSeconds: number): void {
    if (msUntil(limitedUntil) <= 0)
      log.warn(
        { retryAfterSeconds },
        "the social network's rate limit is used up: lookups of handles that are not cached fail until its reset; if this repeats, find what else uses SOCIAL_API_TOKEN",
      );
    limitedUntil = latest(limitedUntil, addMs(monotonicNow(), retryAfterSeconds * 1_000));
  }

  function afterOutage(lastOutage: SocialError): Circuit {
    if (circuit.kind !== "closed")
      return { kind: "open", backoff: afterFailure(circuit.backoff, OPEN), lastOutage };
    const outages = circuit.outages + 1;
    if (outages < FAILURES_TO_OPEN) return { kind: "closed", outages };
    return { kind: "open", backoff: afterFailure(undefined, OPEN), lastOutage };
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

    /** Throws the error of `call`, or {@link SocialError} `circuit-open` or `rate-limited`. */
    async call<T>(call: () => Promise<T>): Promise<T> {
      const currentRefusal = refusal();
      if (currentRefusal) throw currentRefusal;
      const isTrial = circuit.kind !== "closed";
      if (circuit.kind === "open") circuit = { ...circuit, kind: "on-trial" };
      const [result] = await Promise.allSettled([withRetry(call)]);
      const error: unknown = result.status === "rejected" ? result.reason : undefined;
      const failure = error instanceof SocialError ? error.failure : undefined;
      if (failure?.kind === "rate-limited") recordLimit(failure.retryAfterSeconds);
      if (isTrial || circuit.kind === "closed")
        circuit = isOutage(error) ? afterOutage(error) : CLOSED;
      if (result.status === "rejected") throw error;
      return result.value;
    },
  };
}
