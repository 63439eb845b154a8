import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  DelegateBackoff,
  ExponentialBackoff,
  handleWhen,
  isBrokenCircuitError,
  retry,
  wrap,
} from "cockatiel";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import { isOutage, isTransient, SocialError } from "./social-error.ts";

/** Failures in a row that open the circuit. */
const FAILURES_TO_OPEN = 5;
const FIRST_OPEN_MS = 1_000;
const MAX_OPEN_MS = 30_000;
const RETRIES = 1;
const RETRY_MS = { initialDelay: 100, maxDelay: 300 };

/** Makes calls to the network, or fails at once while it fails repeatedly. */
export interface CircuitBreaker {
  /** A signal that aborts after `socialTimeoutMs`; all calls and retries for one batch share it. */
  newDeadline(): AbortSignal;
  /** Whether a call may fail at once, without being made. */
  isOpen(): boolean;
  /** Throws the error of `call`, or {@link SocialError} `circuit-open`. */
  call<T>(call: (signal: AbortSignal) => Promise<T>, deadline: AbortSignal): Promise<T>;
}

/**
 * Wraps the calls of all lookups; the check at start bypasses it. Retries a broken connection or a 5xx once, within
 * `socialTimeoutMs` in total. Five failures in a row open the circuit for a second; then a single trial call closes it,
 * or opens it for longer, up to half a minute.
 */
export function createCircuitBreaker({ socialTimeoutMs }: { socialTimeoutMs: number }): CircuitBreaker {
  /** When the circuit may close again: in `performance.now()` time, and in `Date.now()` time, as in the breaker itself. */
  let openUntil = 0;
  let openUntilDate = 0;
  const breaker = circuitBreaker(handleWhen(isOutage), {
    // No jitter: it could shorten the first open period to almost nothing.
    halfOpenAfter: new DelegateBackoff(({ attempt }) => {
      const openMs = Math.min(FIRST_OPEN_MS * 2 ** (attempt - 1), MAX_OPEN_MS);
      openUntil = performance.now() + openMs;
      openUntilDate = Date.now() + openMs;
      return openMs;
    }),
    breaker: new ConsecutiveBreaker(FAILURES_TO_OPEN),
  });
  const policy = wrap(
    breaker,
    retry(handleWhen(isTransient), { maxAttempts: RETRIES, backoff: new ExponentialBackoff(RETRY_MS) }),
  );
  return {
    newDeadline: () => AbortSignal.timeout(socialTimeoutMs),
    isOpen: () => breaker.state !== CircuitState.Closed,

    async call(call, deadline) {
      // The breaker uses `Date.now()`: if the clock was set back, the circuit would stay open for that much longer.
      const isOverdue = performance.now() >= openUntil && Date.now() < openUntilDate;
      if (breaker.state === CircuitState.Open && isOverdue) breaker.isolate().dispose();
      // A trial call is in flight. Fail instead of waiting for it.
      if (breaker.state === CircuitState.HalfOpen) throw new SocialError({ kind: "circuit-open" });
      try {
        return await policy.execute(() => call(deadline));
      } catch (error) {
        if (isBrokenCircuitError(error)) {
          const retryAfterSeconds = toRetryAfterSeconds(openUntil - performance.now());
          throw new SocialError({ kind: "circuit-open", retryAfterSeconds });
        }
        throw error;
      }
    },
  };
}
