import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  ExponentialBackoff,
  handleWhen,
  isBrokenCircuitError,
  noJitterGenerator,
  retry,
  wrap,
} from "cockatiel";
import { ContractError, toRetryAfterSeconds } from "../contract/errors.ts";
import type { Logger } from "../observability/log.ts";
import { BrokenConnection } from "../upstream/http.ts";

/** Failures in a row before the network is left alone for a while. */
const FAILURES_TO_OPEN = 5;
const OPEN_MS = { initialDelay: 1_000, maxDelay: 30_000 };
const RETRIES = 1;
const RETRY_MS = { initialDelay: 100, maxDelay: 300 };

/** The network's refusal of a call, by its HTTP status; the cause of a {@link ContractError}. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;

  constructor(status: number, type: string) {
    super(`the social network answered ${status} ${type}`.trimEnd());
    this.status = status;
  }
}

/** Whether the network refused a call for its form: one name that it does not take fails a whole batch. */
export function isRefusedForForm(error: unknown): boolean {
  return error instanceof ContractError && error.cause instanceof Refusal && error.cause.status === 400;
}

function isUnavailable(error: unknown): error is ContractError {
  return (
    error instanceof ContractError && error.code === "SOCIAL_API_UNAVAILABLE" && !isRefusedForForm(error)
  );
}

/** Whether the same call may well succeed a moment later: the connection broke, or the network said 5xx. */
function isPassing(error: unknown): boolean {
  if (!isUnavailable(error)) return false;
  return error.cause instanceof Refusal ? error.cause.status >= 500 : error.cause instanceof BrokenConnection;
}

/** Makes calls to the network, or says at once that there is no use in making one. */
export interface Guard {
  /** The end of the time that one question to the network may take, all its calls together. */
  newDeadline(): AbortSignal;
  call<T>(call: (signal: AbortSignal) => Promise<T>, deadline: AbortSignal): Promise<T>;
}

/**
 * Stands before every call to the network: tries a failed one once more, within `timeoutMs` in all; after
 * a 429 makes none before the reset that it named; and after repeated failures makes none for a second,
 * then for longer steps up to half a minute, and then one alone, until one succeeds.
 *
 * @throws {ContractError} what the call threw; SOCIAL_RATE_LIMITED with the time that remains; SOCIAL_API_UNAVAILABLE
 */
export function createGuard({ timeoutMs, log }: { timeoutMs: number; log: Logger }): Guard {
  const breaker = circuitBreaker(handleWhen(isUnavailable), {
    // Without jitter, which could make the first rest as short as nothing.
    halfOpenAfter: new ExponentialBackoff({ ...OPEN_MS, generator: noJitterGenerator }),
    breaker: new ConsecutiveBreaker(FAILURES_TO_OPEN),
  });
  breaker.onBreak(() => {
    log.warn("the social network fails again and again: it is left alone for a while");
  });
  const policy = wrap(
    breaker,
    retry(handleWhen(isPassing), { maxAttempts: RETRIES, backoff: new ExponentialBackoff(RETRY_MS) }),
  );
  let heldUntil = 0;

  function assertNotHeld(): void {
    const heldMs = heldUntil - performance.now();
    if (heldMs <= 0) return;
    throw new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: toRetryAfterSeconds(heldMs) });
  }

  return {
    newDeadline: () => AbortSignal.timeout(timeoutMs),

    async call(call, deadline) {
      assertNotHeld();
      // One call tries whether the network works again; the others do not wait for it.
      if (breaker.state === CircuitState.HalfOpen) throw new ContractError("SOCIAL_API_UNAVAILABLE");
      try {
        return await policy.execute(async () => {
          // Another call may have been told to wait since this one was let in.
          assertNotHeld();
          return call(deadline).catch((error: unknown) => {
            hold(error);
            throw error;
          });
        });
      } catch (error) {
        if (isBrokenCircuitError(error)) throw new ContractError("SOCIAL_API_UNAVAILABLE");
        throw error;
      }
    },
  };

  function hold(error: unknown): void {
    if (!(error instanceof ContractError) || error.code !== "SOCIAL_RATE_LIMITED") return;
    heldUntil = Math.max(heldUntil, performance.now() + (error.retryAfterSeconds ?? 0) * 1000);
  }
}
