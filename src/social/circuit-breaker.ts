import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import type { Warnings } from "../observability/warnings.ts";
import {
  isOperatorProblem,
  isOutage,
  isTransient,
  operatorHint,
  SocialError,
} from "./social-error.ts";
import { afterFailure, isBackingOff, type Backoff } from "../time/backoff.ts";
import { addMs, monotonicNow, msUntil, toIsoTime } from "../time/monotonic.ts";
import { sleep } from "../time/sleep.ts";

const BACKOFF = { firstMs: 125, longestMs: 30_000 };
/** A shorter backoff is only counted: calls go on. */
const LEAST_OPEN_MS = 1_000;
const RETRY_MS = 200;

/** The subject of the warning while the network does not answer, or refuses this service. */
export const SOCIAL_SUBJECT = "social";

interface Failing extends Backoff {
  readonly error: SocialError;
}

export type CircuitBreaker = ReturnType<typeof createCircuitBreaker>;

/**
 * Refuses calls while the circuit is open: after a 429 until the reset, and once outages have
 * lasted for about a second. It opens for a second, and for twice as long after each further outage,
 * up to 30 s. Retries a broken connection or a 5xx once. Warns the operator while calls fail.
 */
export function createCircuitBreaker({ log, warnings }: { log: Logger; warnings: Warnings }) {
  /** Undefined once the network answers. */
  let outage: Failing | undefined;
  /** The last 429. It lasts until the reset, whatever the calls in flight return. */
  let limit: Failing | undefined;

  const current = () => (isBackingOff(limit) ? limit : outage);

  /** Why a call would be refused now. */
  function refusal(): SocialError | undefined {
    const failing = current();
    if (!failing || failing.waitMs < LEAST_OPEN_MS || !isBackingOff(failing)) return undefined;
    const kind = failing === limit ? "rate-limited" : "circuit-open";
    const retryAfterSeconds = toRetryAfterSeconds(msUntil(failing.endsAt));
    return new SocialError({ kind, retryAfterSeconds }, failing.error);
  }

  /** `error`: undefined if a call succeeded. */
  function record(error: SocialError | undefined): void {
    if (error && isOutage(error)) {
      outage = { error, ...afterFailure(outage, BACKOFF) };
      const level = isOperatorProblem(error.failure) ? "error" : "warn";
      warnings.raise(SOCIAL_SUBJECT, operatorHint(error), { level });
      return;
    }
    outage = undefined;
    warnings.clear(SOCIAL_SUBJECT, "the social network answers again");
    if (error?.failure.kind !== "rate-limited" || isBackingOff(limit)) return;
    const { retryAfterSeconds } = error.failure;
    const waitMs = 1_000 * retryAfterSeconds;
    limit = { error, waitMs, endsAt: addMs(monotonicNow(), waitMs) };
    log.warn(
      { retryAfterSeconds },
      "the social network's rate limit is used up: lookups of handles that are not cached fail until its reset; if this repeats, find what else uses SOCIAL_API_TOKEN",
    );
  }

  return {
    refusal,

    /** For the operator. `openUntil` and `lastError`: absent while the circuit is closed. */
    describe() {
      const failing = current();
      return {
        circuit: refusal() ? "open" : failing ? "half-open" : "closed",
        ...(failing && { openUntil: toIsoTime(failing.endsAt), lastError: failing.error.message }),
      };
    },

    /** Returns the result of `call`, or {@link SocialError} `circuit-open` or `rate-limited`. */
    async call<T>(call: () => Promise<T | SocialError>): Promise<T | SocialError> {
      const currentRefusal = refusal();
      if (currentRefusal) return currentRefusal;
      let result = await call();
      if (result instanceof SocialError && isTransient(result)) {
        await sleep(RETRY_MS);
        // Another call may have received a 429.
        if (!refusal()) result = await call();
      }
      record(result instanceof SocialError ? result : undefined);
      return result;
    },
  };
}
