import { setTimeout as sleep } from "node:timers/promises";
import { withDeadline } from "./deadline.ts";
import type { EndpointJudge } from "./endpoint-judge.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { isBehind, isOfSlot, isRefusal, isRetryable } from "./rpc-error.ts";

interface Call<T> {
  readonly attempt: Attempt<T>;
  readonly isComplete: (result: T) => boolean;
  /** Whether the call contains a transaction, which some endpoints may refuse. */
  readonly withTransaction: boolean;
}

/** The fraction of the timeout after which a call also goes to the next endpoint. */
const SLOW_AFTER = 1 / 5;
/**
 * The wait before all endpoints are tried again; random, so that callers do not retry at the same
 * time.
 */
const RETRY_MS = [50, 150] as const;
/** The wait while nodes are behind: a slot or two. */
const CATCH_UP_MS = [200, 400] as const;
/**
 * How many times a call asks only the best endpoint while this endpoint is behind: for about 1.2 s.
 */
const TRIES_AT_BEST = 6;

export type Failover = ReturnType<typeof createFailover>;

/**
 * Makes each call at the first of `endpoints` that works, within `rpcTimeoutMs` in total. Tries
 * endpoints in the order of {@link createEndpointJudge}. A call that takes a fifth of the timeout
 * also goes to the next endpoint; the first complete result counts, and the other attempts are
 * aborted. After an error about the request itself, the call tries no further endpoint, and fails
 * once all open attempts have failed. When every endpoint has failed, the call waits briefly and
 * tries all once more; if they are only behind, it repeats this until the timeout. The best
 * endpoint has about 1.2 s to catch up before the next one is asked. Otherwise an endpoint that
 * claims a high slot would receive the reads of every account that was just collected.
 *
 * An incomplete result is not a failure: the call goes on to the next endpoints that do not back
 * off. If none returns a complete result, the call returns the incomplete one without waiting for
 * slow endpoints.
 */
export function createFailover(needs: {
  endpoints: readonly Endpoint[];
  judge: Pick<
    EndpointJudge,
    | "inOrder"
    | "takers"
    | "isBest"
    | "backsOff"
    | "failed"
    | "succeeded"
    | "tookTransaction"
    | "check"
  >;
  rpcTimeoutMs: number;
}) {
  const { endpoints, judge, rpcTimeoutMs } = needs;

  function tryAll<T>(
    { attempt, isComplete, withTransaction }: Call<T>,
    deadline: AbortSignal,
    waitsForBest: boolean,
  ): Promise<T> {
    const candidates = judge.inOrder(withTransaction);
    const refusing: Endpoint[] = [];
    // Not AbortSignal.any, which would keep its sources from being garbage-collected.
    const stop = new AbortController();
    const open = new Set<Endpoint>();
    const slow = new Set<Endpoint>();
    let next = 0;
    let isSettled = false;
    let incomplete: { readonly result: T } | undefined;
    /** The last failure. A retryable failure does not replace a failure about the slot. */
    let failure: Error | undefined;
    const giveUp = () => {
      stop.abort(deadline.reason);
    };
    if (deadline.aborted) giveUp();
    else deadline.addEventListener("abort", giveUp, { once: true });

    return new Promise<T>((resolve, reject) => {
      function settle(): void {
        isSettled = true;
        deadline.removeEventListener("abort", giveUp);
        if (open.size > 0) stop.abort();
      }

      function succeed(result: T, late: Iterable<Endpoint>): void {
        for (const endpoint of late) if (open.has(endpoint)) judge.failed(endpoint, "slow");
        settle();
        resolve(result);
      }

      function start(): void {
        const endpoint = candidates[next++]!;
        open.add(endpoint);
        const timer = setTimeout(() => {
          slow.add(endpoint);
          goOn();
        }, rpcTimeoutMs * SLOW_AFTER);
        attempt(endpoint, stop.signal)
          .finally(() => {
            clearTimeout(timer);
            open.delete(endpoint);
          })
          .then(
            (result) => {
              if (isSettled) return;
              judge.succeeded(endpoint);
              if (withTransaction) judge.tookTransaction([endpoint], refusing);
              if (isComplete(result)) {
                // An endpoint that was tried earlier and has not answered yet is slow.
                succeed(result, candidates.slice(0, candidates.indexOf(endpoint)));
                return;
              }
              incomplete = { result };
              goOn();
            },
            (reason: unknown) => {
              if (isSettled) return;
              judge.failed(endpoint, reason);
              if (isRefusal(reason)) refusing.push(endpoint);
              const waits =
                waitsForBest && next === 1 && isOfSlot(reason) && judge.isBest(endpoint);
              if (!isRetryable(reason) || waits) next = candidates.length;
              // Keep a failure about the slot: the call is then retried, because the endpoint may
              // soon catch up.
              if (!isRetryable(reason) || !isOfSlot(failure)) failure = reason as Error;
              goOn();
            },
          );
      }

      /** Asks the next endpoint, waits for the open attempts, or settles. */
      function goOn(): void {
        const candidate = stop.signal.aborted ? undefined : candidates[next];
        // With a result at hand, an endpoint that backs off is not worth the wait.
        if (candidate && !(incomplete && judge.backsOff(candidate))) start();
        else if (incomplete && slow.isSupersetOf(open)) succeed(incomplete.result, slow);
        else if (open.size === 0) {
          settle();
          reject(failure!);
        } else if (isOfSlot(failure) && slow.isSupersetOf(open)) {
          // Retry without waiting for slow endpoints: the answer that was refused for its slot may
          // then be accepted.
          for (const endpoint of open) judge.failed(endpoint, "slow");
          settle();
          reject(failure!);
        }
      }

      start();
    });
  }

  /**
   * Retries at once if the first try fails because of a slot: another answer may have made that
   * slot acceptable.
   */
  async function tryWithRetries<T>(call: Call<T>, deadline: AbortSignal): Promise<T> {
    let tries = 0;
    for (let isLast = false; ;) {
      try {
        const result = await tryAll(call, deadline, ++tries <= TRIES_AT_BEST);
        judge.check();
        return result;
      } catch (error) {
        if (isLast || !isRetryable(error) || deadline.aborted) throw error;
        const [least, most] = isBehind(error) ? CATCH_UP_MS : RETRY_MS;
        isLast = !isBehind(error);
        if (tries > 1 || !isOfSlot(error)) await sleep(least + Math.random() * (most - least));
      }
    }
  }

  const start = <T>(call: Call<T>): Promise<T> =>
    withDeadline(rpcTimeoutMs, (deadline) => tryWithRetries(call, deadline));

  const callAll = <T>(
    some: readonly Endpoint[],
    attempt: Attempt<T>,
    maxMs: number,
  ): Promise<PromiseSettledResult<T>[]> =>
    withDeadline(Math.min(maxMs, rpcTimeoutMs), (deadline) =>
      Promise.allSettled(
        some.map(async (endpoint) => {
          try {
            const result = await attempt(endpoint, deadline);
            judge.succeeded(endpoint);
            return result;
          } catch (error) {
            judge.failed(endpoint, error);
            throw error;
          }
        }),
      ),
    );

  /** Like `callAll`, but an endpoint that backs off has a fifth of the timeout. */
  const callSome = <T>(
    some: readonly Endpoint[],
    attempt: Attempt<T>,
    toResult: (endpoint: Endpoint, error: unknown) => T,
  ): Promise<T[]> =>
    Promise.all(
      some.map(async (endpoint) => {
        const maxMs = judge.backsOff(endpoint) ? rpcTimeoutMs * SLOW_AFTER : rpcTimeoutMs;
        const [settled] = await callAll([endpoint], attempt, maxMs);
        return settled!.status === "fulfilled"
          ? settled!.value
          : toResult(endpoint, settled!.reason);
      }),
    );

  return {
    /** Without `isComplete`, every result is complete. */
    call: <T>(attempt: Attempt<T>, isComplete: (result: T) => boolean = () => true): Promise<T> =>
      start({ attempt, isComplete, withTransaction: false }),

    /** Makes a call that contains a transaction, last at endpoints that refuse transactions. */
    callWithTransaction: <T>(attempt: Attempt<T>): Promise<T> =>
      start({ attempt, isComplete: () => true, withTransaction: true }),

    /**
     * Makes a call at every configured endpoint at once, within `maxMs`. Returns each endpoint's
     * result, in order.
     */
    callEach: <T>(attempt: Attempt<T>, maxMs = rpcTimeoutMs): Promise<PromiseSettledResult<T>[]> =>
      callAll(endpoints, attempt, maxMs),

    /**
     * Makes a call at the two best endpoints at once, and then at the others too, unless the two
     * results are enough. `toResult` converts an endpoint's error. Never rejects.
     */
    async callTwo<T>(
      attempt: Attempt<T>,
      toResult: (endpoint: Endpoint, error: unknown) => T,
      isEnough: (results: readonly T[]) => boolean,
    ): Promise<T[]> {
      const candidates = judge.inOrder();
      const results = await callSome(candidates.slice(0, 2), attempt, toResult);
      if (candidates.length <= 2 || isEnough(results)) return results;
      return [...results, ...(await callSome(candidates.slice(2), attempt, toResult))];
    },

    /**
     * Makes a call that contains a transaction at every endpoint at once, without those that refuse
     * transactions.
     */
    async callEachWithTransaction<T>(attempt: Attempt<T>): Promise<PromiseSettledResult<T>[]> {
      const takers = judge.takers();
      const results = await callAll(takers, attempt, rpcTimeoutMs);
      judge.tookTransaction(
        takers.filter((_, i) => results[i]!.status === "fulfilled"),
        takers.filter((_, i) => isRefusal((results[i] as PromiseRejectedResult).reason)),
      );
      return results;
    },
  };
}
