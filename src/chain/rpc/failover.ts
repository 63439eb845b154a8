import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import type { ClusterCheck } from "./cluster-check.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { isBehind, isRetryable } from "./rpc-error.ts";
import { withDeadline } from "./deadline.ts";

interface Health {
  readonly endpoint: Endpoint;
  failuresInARow: number;
  /** A `performance.now()` time; until then the other endpoints are tried first. */
  backsOffUntil: number;
}

const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
/** The fraction of the timeout after which a call also goes to the next endpoint. */
const SLOW_AFTER = 1 / 5;
/** The wait before all endpoints are tried again; random, so that callers do not retry at the same time. */
const RETRY_MS = [50, 150] as const;
/** The wait while nodes are behind: about a slot. */
const CATCH_UP_MS = [200, 400] as const;

export type Failover = ReturnType<typeof createFailover>;

/**
 * Makes each call at the first of `endpoints` that works, within `timeoutMs` in total.
 *
 * An endpoint that fails, rate limits, is behind or is slow backs off: it is tried last, for half a second
 * at first and twice as long after each further failure, up to half a minute; a success resets this.
 * A call that takes a fifth of the timeout also goes to the next endpoint; the first complete result counts and
 * the other attempts are aborted. After an error about the request itself no further endpoint is tried; the call
 * fails only when all open attempts have failed. When every endpoint has failed, all are tried once more after a
 * short wait; while they are only behind, until the timeout.
 *
 * An incomplete result is not a failure: the call goes on to the next endpoints that do not back off. If none of them
 * has a complete one, it returns the incomplete one without waiting for slow endpoints.
 */
export function createFailover(needs: {
  endpoints: readonly Endpoint[];
  clusters: ClusterCheck;
  timeoutMs: number;
  log: Logger;
}) {
  const { clusters, timeoutMs, log } = needs;
  const all: Health[] = needs.endpoints.map((endpoint) => ({
    endpoint,
    failuresInARow: 0,
    backsOffUntil: 0,
  }));

  const backsOff = ({ backsOffUntil }: Health) => backsOffUntil > performance.now();
  const inOrder = () => [...all.filter((health) => !backsOff(health)), ...all.filter(backsOff)];

  function backOff(health: Health, cause: unknown): void {
    const { host } = health.endpoint;
    clusters.forget(health.endpoint);
    // Calls that fail at the same moment count as one failure.
    if (backsOff(health)) return;
    if (health.failuresInARow === 0 && all.length > 1)
      log.warn(
        { host, err: cause },
        "a chain endpoint fails: the others are tried first; if this lasts, check its status and its plan's limits",
      );
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** health.failuresInARow, MAX_BACKOFF_MS);
    health.failuresInARow++;
    health.backsOffUntil = performance.now() + backoffMs;
  }

  function recover(health: Health): void {
    if (health.failuresInARow > 0) log.info({ host: health.endpoint.host }, "a chain endpoint works again");
    health.failuresInARow = 0;
    health.backsOffUntil = 0;
  }

  /** A single endpoint needs no check, because there is none that it could differ from. */
  function attemptAt<T>(attempt: Attempt<T>, endpoint: Endpoint, signal: AbortSignal): Promise<T> {
    return all.length === 1 ? attempt(endpoint, signal) : clusters.attempt(attempt, endpoint, signal);
  }

  /** Tries the endpoints in turn until one has a complete result; starts the next one early when one is slow. */
  function tryAll<T>(
    attempt: Attempt<T>,
    isComplete: (result: T) => boolean,
    deadline: AbortSignal,
  ): Promise<T> {
    const candidates = inOrder();
    // Not AbortSignal.any, which would keep its sources from being garbage-collected.
    const stop = new AbortController();
    const open = new Set<Health>();
    const slow = new Set<Health>();
    let next = 0;
    let isSettled = false;
    let incomplete: { readonly result: T } | undefined;
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

      function succeed(result: T, late: Iterable<Health>): void {
        for (const health of late) if (open.has(health)) backOff(health, "slow");
        settle();
        resolve(result);
      }

      function start(): void {
        const health = candidates[next++]!;
        open.add(health);
        const timer = setTimeout(() => {
          slow.add(health);
          goOn();
        }, timeoutMs * SLOW_AFTER);
        attemptAt(attempt, health.endpoint, stop.signal)
          .finally(() => {
            clearTimeout(timer);
            open.delete(health);
          })
          .then(
            (result) => {
              if (isSettled) return;
              recover(health);
              if (isComplete(result)) {
                // An endpoint that was tried earlier and has not answered yet is slow.
                succeed(result, candidates.slice(0, candidates.indexOf(health)));
                return;
              }
              incomplete = { result };
              goOn();
            },
            (reason: unknown) => {
              if (isSettled) return;
              if (isRetryable(reason)) backOff(health, reason);
              else next = candidates.length;
              goOn(reason as Error);
            },
          );
      }

      /** Asks the next endpoint, waits for the open attempts, or settles; `reason` is the last failure. */
      function goOn(reason?: Error): void {
        const candidate = stop.signal.aborted ? undefined : candidates[next];
        // With a result at hand, an endpoint that backs off is not worth the wait.
        if (candidate && !(incomplete && backsOff(candidate))) start();
        else if (incomplete && slow.isSupersetOf(open)) succeed(incomplete.result, slow);
        else if (open.size === 0) {
          settle();
          reject(reason!);
        }
      }

      start();
    });
  }

  /** Tries all endpoints, and once more after a wait; while they are only behind, until the deadline. */
  async function tryWithRetries<T>(
    attempt: Attempt<T>,
    isComplete: (result: T) => boolean,
    deadline: AbortSignal,
  ): Promise<T> {
    for (let isLast = false; ;) {
      try {
        return await tryAll(attempt, isComplete, deadline);
      } catch (error) {
        if (isLast || !isRetryable(error) || deadline.aborted) throw error;
        const [least, most] = isBehind(error) ? CATCH_UP_MS : RETRY_MS;
        isLast = !isBehind(error);
        await sleep(least + Math.random() * (most - least));
      }
    }
  }

  /** Tries every endpoint at once and waits for all of them. */
  function tryEach<T>(attempt: Attempt<T>, deadline: AbortSignal): Promise<PromiseSettledResult<T>[]> {
    return Promise.allSettled(
      all.map(async (health) => {
        try {
          const result = await attemptAt(attempt, health.endpoint, deadline);
          recover(health);
          return result;
        } catch (error) {
          if (isRetryable(error)) backOff(health, error);
          throw error;
        }
      }),
    );
  }

  return {
    /** Without `isComplete`, every result is complete. */
    call: <T>(attempt: Attempt<T>, isComplete: (result: T) => boolean = () => true): Promise<T> =>
      withDeadline(timeoutMs, (deadline) => tryWithRetries(attempt, isComplete, deadline)),

    /** For a call that one endpoint may accept and drop. Waits for all endpoints; fails if all of them fail. */
    async callEverywhere<T>(attempt: Attempt<T>): Promise<T> {
      const results = await withDeadline(timeoutMs, (deadline) => tryEach(attempt, deadline));
      const success = results.find((result) => result.status === "fulfilled");
      if (success) return success.value;
      throw (results[0] as PromiseRejectedResult).reason;
    },

    /** Each endpoint's own result, within `maxMs`; undefined for one that fails or is on another cluster. */
    async askEach<T>(attempt: Attempt<T>, maxMs: number): Promise<(T | undefined)[]> {
      const results = await withDeadline(Math.min(maxMs, timeoutMs), (deadline) =>
        tryEach(attempt, deadline),
      );
      return results.map((result) => (result.status === "fulfilled" ? result.value : undefined));
    },
  };
}
