import { setTimeout as sleep } from "node:timers/promises";
import { toError } from "../../observability/thrown.ts";
import { addMs, monotonicNow, msSince, msUntil } from "../../time/monotonic.ts";
import { withDeadline } from "../../upstream/deadline.ts";
import type { Endpoints, Kind } from "./endpoints.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { isBehind, isUnsupported, RpcError } from "./rpc-error.ts";

/** The wait while nodes are behind: a slot or two. */
const CATCH_UP_MS = 300;
/** The wait before all endpoints are tried again, and by how much it grows: 1.6 s for all tries. */
const RETRY_MS = 50;
const RETRY_GROWTH = 1.5;
/** How often they are tried: less if all are down, so that errors are quick. */
const TRIES = { usual: 8, down: 2 };
/** An endpoint is down once all its calls have failed for so long. */
const DOWN_AFTER_MS = 3_000;

/** Why an attempt is aborted whose result nobody needs. */
const NOT_NEEDED = new Error("another endpoint was faster");

/** Tests pass shorter waits. The defaults are for production. */
export interface FailoverWaits {
  /** The wait before all endpoints are tried again. */
  readonly retryMs?: number | undefined;
  /** The wait before a landed transaction is read again. */
  readonly rereadMs?: number | undefined;
}

interface CallOptions<T> {
  /** An endpoint that should have reached this slot is asked first. Others' answers can raise it. */
  readonly minSlot?: (() => number) | undefined;
  /** Whether other endpoints need not be asked. If none has a better result, the last one counts. */
  readonly isEnough?: (result: T) => boolean;
  /** Whether a result that is not enough counts only once all others have answered or are down. */
  readonly needsAll?: boolean;
  /** Whether the call waits for no turn. */
  readonly isAtOnce?: boolean;
}

export type Failover = ReturnType<typeof createFailover>;

/**
 * Makes each call at the best of the `endpoints`, within `rpcTimeoutMs` in total. The next one is
 * asked when one fails, is behind, or is slow; the first result counts. When all have failed, they
 * are tried again, after growing waits, or until the timeout if some are only behind. `Retry-After`
 * is kept: a call that cannot wait for so long fails at once.
 */
export function createFailover(
  needs: FailoverWaits & {
    endpoints: Endpoints;
    /** Waits until a call may be made. Rejects if it may not. */
    takeTurn?: (() => Promise<void> | undefined) | undefined;
    rpcTimeoutMs: number;
  },
) {
  const { endpoints, takeTurn, rpcTimeoutMs, retryMs = RETRY_MS } = needs;

  const isDown = (endpoint: Endpoint, kind: Kind) =>
    endpoints.fails(endpoint, kind) && endpoints.failsForMs(endpoint, kind) > DOWN_AFTER_MS;

  /** Makes one attempt, and records whether it succeeds in time, unless it is aborted before. */
  async function attemptAt<T>(
    endpoint: Endpoint,
    kind: Kind,
    attempt: Attempt<T>,
    signal: AbortSignal,
    onSlow?: () => void,
  ): Promise<T> {
    const startedAt = monotonicNow();
    const timer = setTimeout(() => {
      endpoints.failed(endpoint, kind, "slow");
      onSlow?.();
    }, endpoints.slowMs);
    try {
      const result = await attempt(endpoint, signal);
      if (msSince(startedAt) < endpoints.slowMs) endpoints.succeeded(endpoint, kind);
      return result;
    } catch (error) {
      if (signal.reason !== NOT_NEEDED) endpoints.failed(endpoint, kind, error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Asks the endpoints in order, each once, until a result is enough. Leaves out those that want no
   * calls now.
   */
  function askInOrder<T>(
    kind: Kind,
    inOrder: readonly Endpoint[],
    attempt: Attempt<T>,
    { isEnough = () => true, needsAll }: CallOptions<T>,
    deadline: AbortSignal,
  ): Promise<T> {
    // Not AbortSignal.any, which would keep its sources from being garbage-collected.
    const stop = new AbortController();
    const giveUp = () => {
      stop.abort(deadline.reason);
    };
    deadline.addEventListener("abort", giveUp);
    const isRefused = (endpoint: Endpoint) => endpoints.refusesForMs(endpoint, kind) > 0;
    const rest = inOrder.filter((each) => !isRefused(each));
    /** The attempts that have no end yet, and those of them that are not slow. */
    let open = 0;
    const inTime = new Set<Endpoint>();
    let lesser: { readonly result: T } | undefined;
    let failure: unknown;
    let mayRecover = inOrder.some((each) => isRefused(each) && !isDown(each, kind));

    return new Promise<T>((resolve, reject) => {
      function goOn(): void {
        const next = deadline.aborted ? undefined : rest.shift();
        if (next && lesser && !needsAll && isDown(next, kind)) goOn();
        else if (next) void start(next);
        else if (open === 0 || (lesser && inTime.size === 0)) {
          if (lesser && !(needsAll && mayRecover)) resolve(lesser.result);
          else
            reject(
              toError(failure ?? new RpcError("status", kind, "every endpoint", { code: 429 })),
            );
        }
      }

      async function start(endpoint: Endpoint): Promise<void> {
        open++;
        inTime.add(endpoint);
        try {
          const result = await attemptAt(endpoint, kind, attempt, stop.signal, () => {
            inTime.delete(endpoint);
            goOn();
          });
          if (isEnough(result)) {
            open--;
            resolve(result);
            return;
          }
          lesser = { result };
        } catch (error) {
          // A call that failed because nodes are behind is tried again.
          if (!isBehind(failure)) failure = error;
          mayRecover ||= !isBehind(error) && !isUnsupported(error) && !isDown(endpoint, kind);
        }
        open--;
        inTime.delete(endpoint);
        goOn();
      }

      goOn();
    }).finally(() => {
      rest.length = 0;
      deadline.removeEventListener("abort", giveUp);
      if (open > 0) stop.abort(NOT_NEEDED);
    });
  }

  async function callInTime<T>(
    kind: Kind,
    attempt: Attempt<T>,
    options: CallOptions<T>,
    deadline: AbortSignal,
  ): Promise<T> {
    const endsAt = addMs(monotonicNow(), rpcTimeoutMs);
    for (let tries = 1, waitMs = retryMs; ; tries++, waitMs *= RETRY_GROWTH) {
      const inOrder = endpoints.inOrder(kind, options.minSlot?.());
      let failure: unknown;
      try {
        return await askInOrder(kind, inOrder, attempt, options, deadline);
      } catch (error) {
        failure = error;
        if (!(error instanceof RpcError) || isUnsupported(error)) throw error;
      } finally {
        endpoints.check();
      }
      const areDown = inOrder.every((each) => isDown(each, kind));
      if (!isBehind(failure) && tries >= (areDown ? TRIES.down : TRIES.usual)) throw failure;
      const ms = Math.max(
        // Random, so that callers do not retry at the same time.
        (isBehind(failure) ? CATCH_UP_MS : waitMs) * (0.5 + Math.random()),
        Math.min(...inOrder.map((endpoint) => endpoints.refusesForMs(endpoint, kind))),
      );
      if (ms > msUntil(endsAt)) throw failure;
      await sleep(ms);
      if (deadline.aborted) throw failure;
    }
  }

  return {
    async call<T>(kind: Kind, attempt: Attempt<T>, options: CallOptions<T> = {}): Promise<T> {
      if (!options.isAtOnce) await takeTurn?.();
      return withDeadline(rpcTimeoutMs, (deadline) => callInTime(kind, attempt, options, deadline));
    },

    /** Makes one attempt at an endpoint, whatever its state. */
    callOne: <T>(
      endpoint: Endpoint,
      kind: Kind,
      attempt: Attempt<T>,
      timeoutMs = endpoints.slowMs,
    ): Promise<T> =>
      withDeadline(timeoutMs, (deadline) => attemptAt(endpoint, kind, attempt, deadline)),
  };
}
