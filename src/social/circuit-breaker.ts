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
import { addMs, latest, LONG_AGO, monotonicNow, msUntil, toIsoTime } from "../time/monotonic.ts";
import { sleep } from "../time/sleep.ts";

const FAILURES_TO_OPEN = 5;
/** How long the circuit is open: at first, and at most. */
const OPEN_MS = 1_000;
const MAX_OPEN_MS = 30_000;
const RETRY_MS = 200;

/**
 * The subjects of warnings: the network does not answer, or refuses this service's token or app.
 */
export const SOCIAL_SUBJECTS = ["social", "social access"] as const;
const [AWAY, ACCESS] = SOCIAL_SUBJECTS;

export type CircuitBreaker = ReturnType<typeof createCircuitBreaker>;

/**
 * Refuses calls after a 429 until the reset, and while the circuit is open. Five outages in a row
 * open it for a second; then a single trial call closes it, or opens it for longer, up to 30 s.
 * Retries a broken connection or a 5xx once. Warns the operator while calls fail.
 */
export function createCircuitBreaker({ log, warnings }: { log: Logger; warnings: Warnings }) {
  /** In a row; those of calls at the same time count once. */
  let outages = 0;
  let lastOutage: SocialError | undefined;
  let openUntil = LONG_AGO;
  /** No call is made until this time, after a 429. */
  let limitedUntil = LONG_AGO;
  const isClosed = () => outages < FAILURES_TO_OPEN;

  /** Why a call would be refused now. */
  function refusal(): SocialError | undefined {
    const [limitedMs, openMs] = [msUntil(limitedUntil), msUntil(openUntil)];
    const retryAfterSeconds = toRetryAfterSeconds(Math.max(limitedMs, openMs));
    if (limitedMs > 0) return new SocialError({ kind: "rate-limited", retryAfterSeconds });
    if (isClosed() || openMs <= 0) return undefined;
    return new SocialError({ kind: "circuit-open", retryAfterSeconds }, lastOutage);
  }

  /** Keeps calls away after an outage, and while a trial call is in flight. */
  function stayOpen(): void {
    const openMs = Math.min(OPEN_MS * 2 ** (outages - FAILURES_TO_OPEN), MAX_OPEN_MS);
    openUntil = addMs(monotonicNow(), openMs);
  }

  function recordLimit(retryAfterSeconds: number): void {
    if (msUntil(limitedUntil) <= 0)
      log.warn(
        { retryAfterSeconds },
        "the social network's rate limit is used up: lookups of handles that are not cached fail until its reset; if this repeats, find what else uses SOCIAL_API_TOKEN",
      );
    limitedUntil = latest(limitedUntil, addMs(monotonicNow(), retryAfterSeconds * 1_000));
  }

  /** `earlierOutages`: those when the call began. `error`: undefined if it succeeded. */
  function record(earlierOutages: number, error?: unknown): void {
    const outage = isOutage(error) ? error : undefined;
    if (error instanceof SocialError && error.failure.kind === "rate-limited")
      recordLimit(error.failure.retryAfterSeconds);
    else if (!outage) clear(ACCESS);
    const isRefused = outage && isOperatorProblem(outage.failure);
    if (!outage || isRefused) clear(AWAY);
    if (outage) {
      const level = isRefused ? "error" : "warn";
      warnings.raise(isRefused ? ACCESS : AWAY, operatorHint(outage), { level });
    }
    // A call that began before the last outage says nothing new, unless it shows that not all fail.
    if (earlierOutages !== outages && (outage || !isClosed())) return;
    outages = outage ? outages + 1 : 0;
    lastOutage = outage;
    stayOpen();
  }

  const clear = (subject: string) => {
    warnings.clear(subject, "the social network answers again");
  };

  async function withRetry<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error)) throw error;
      await sleep(RETRY_MS);
      // Another call may have received a 429.
      if (msUntil(limitedUntil) > 0) throw refusal()!;
      return call();
    }
  }

  return {
    refusal,

    /** For the operator. `openUntil` and `lastError`: absent while the circuit is closed. */
    describe: () => ({
      circuit: isClosed() ? "closed" : msUntil(openUntil) > 0 ? "open" : "half-open",
      ...(!isClosed() && { openUntil: toIsoTime(openUntil), lastError: lastOutage?.message }),
      limitedUntil: msUntil(limitedUntil) > 0 ? toIsoTime(limitedUntil) : undefined,
    }),

    /** Throws the error of `call`, or {@link SocialError} `circuit-open` or `rate-limited`. */
    async call<T>(call: () => Promise<T>): Promise<T> {
      const currentRefusal = refusal();
      if (currentRefusal) throw currentRefusal;
      const earlierOutages = outages;
      if (!isClosed()) stayOpen();
      try {
        const result = await withRetry(call);
        record(earlierOutages);
        return result;
      } catch (error) {
        record(earlierOutages, error);
        throw error;
      }
    },
  };
}
