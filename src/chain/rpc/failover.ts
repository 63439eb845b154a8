import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import { isBehind, isRetryable } from "./rpc-error.ts";

/** One JSON-RPC endpoint. Only `host` may be shown: the rest of the URL may hold a key. */
export interface Endpoint {
  readonly url: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Makes one attempt of a call at one endpoint; rejects with an {@link RpcError}. */
export type Attempt<T> = (endpoint: Endpoint, signal: AbortSignal) => Promise<T>;

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

/**
 * Makes each call at the first endpoint of `urls` that works, within `timeoutMs` in total.
 *
 * An endpoint that fails, rate limits, is behind or is slow backs off: it is tried last, for half a second
 * at first and twice as long after each further failure, up to half a minute; a success resets this.
 * A call that takes a fifth of the timeout also goes to the next endpoint; the first result counts and the
 * other attempts are aborted. An error about the request itself ends the call, because every node would
 * return it, but only after all open attempts, because one of them may still succeed. When every endpoint has
 * failed, all are tried once more after a short wait; while they are only behind, until the timeout.
 */
export function createFailover(needs: { urls: readonly URL[]; timeoutMs: number; log: Logger }) {
  const { timeoutMs, log } = needs;
  const all: Health[] = needs.urls.map((url) => ({
    endpoint: toEndpoint(url),
    failuresInARow: 0,
    backsOffUntil: 0,
  }));

  function inOrder(): Health[] {
    const now = performance.now();
    const backsOff = ({ backsOffUntil }: Health) => backsOffUntil > now;
    return [...all.filter((health) => !backsOff(health)), ...all.filter(backsOff)];
  }

  function backOff(health: Health, cause: unknown): void {
    const { host } = health.endpoint;
    if (health.failuresInARow === 0 && all.length > 1)
      log.warn({ host, err: cause }, "a chain endpoint fails: the others are tried first");
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** health.failuresInARow, MAX_BACKOFF_MS);
    health.failuresInARow++;
    health.backsOffUntil = performance.now() + backoffMs;
  }

  function recover(health: Health): void {
    if (health.failuresInARow > 0) log.info({ host: health.endpoint.host }, "a chain endpoint works again");
    health.failuresInARow = 0;
    health.backsOffUntil = 0;
  }

  /** Tries the endpoints in turn until one succeeds; starts the next one early when one is slow. */
  function tryAll<T>(attempt: Attempt<T>, deadline: AbortSignal): Promise<T> {
    const candidates = inOrder();
    // Not AbortSignal.any, which would keep its sources from being garbage-collected.
    const stop = new AbortController();
    const open = new Set<Health>();
    let next = 0;
    let isSettled = false;
    const giveUp = () => {
      stop.abort(deadline.reason);
    };
    if (deadline.aborted) giveUp();
    else deadline.addEventListener("abort", giveUp, { once: true });

    function settle(): void {
      isSettled = true;
      deadline.removeEventListener("abort", giveUp);
      if (open.size > 0) stop.abort();
    }

    return new Promise<T>((resolve, reject) => {
      function start(): void {
        const health = candidates[next++]!;
        open.add(health);
        const slow = setTimeout(() => {
          if (next < candidates.length) start();
        }, timeoutMs * SLOW_AFTER);
        attempt(health.endpoint, stop.signal)
          .finally(() => {
            clearTimeout(slow);
            open.delete(health);
          })
          .then(
            (result) => {
              if (isSettled) return;
              // An endpoint that was tried earlier and has not answered yet is slow.
              const earlier = candidates.slice(0, candidates.indexOf(health));
              for (const other of earlier) if (open.has(other)) backOff(other, "slow");
              settle();
              recover(health);
              resolve(result);
            },
            (reason: unknown) => {
              const error = reason as Error;
              if (isSettled) return;
              if (isRetryable(error)) {
                backOff(health, error);
                if (next < candidates.length) start();
              }
              // An attempt that is still open may succeed.
              if (open.size > 0) return;
              settle();
              reject(error);
            },
          );
      }
      start();
    });
  }

  /** Tries all endpoints, and once more after a wait; while they are only behind, until the deadline. */
  async function tryWithRetries<T>(attempt: Attempt<T>, deadline: AbortSignal): Promise<T> {
    for (let isLast = false; ;) {
      try {
        return await tryAll(attempt, deadline);
      } catch (error) {
        if (isLast || !isRetryable(error) || deadline.aborted) throw error;
        const [least, most] = isBehind(error) ? CATCH_UP_MS : RETRY_MS;
        isLast = !isBehind(error);
        await sleep(least + Math.random() * (most - least));
      }
    }
  }

  /** Tries every endpoint at once and waits for all of them. Returns a success, or throws the first endpoint's error. */
  async function tryEverywhere<T>(attempt: Attempt<T>, deadline: AbortSignal): Promise<T> {
    const attempts = all.map(async (health) => {
      try {
        const result = await attempt(health.endpoint, deadline);
        recover(health);
        return result;
      } catch (error) {
        if (isRetryable(error)) backOff(health, error);
        throw error;
      }
    });
    const results = await Promise.allSettled(attempts);
    const success = results.find((result) => result.status === "fulfilled");
    if (success) return success.value;
    throw (results[0] as PromiseRejectedResult).reason;
  }

  async function withDeadline<T>(run: (deadline: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = new AbortController();
    // Not AbortSignal.timeout, which would keep the whole call in memory until the deadline.
    const timer = setTimeout(() => {
      deadline.abort(new DOMException(`no answer within ${timeoutMs} ms`, "TimeoutError"));
    }, timeoutMs);
    try {
      return await run(deadline.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    call: <T>(attempt: Attempt<T>): Promise<T> =>
      withDeadline((deadline) => tryWithRetries(attempt, deadline)),

    /** For a call that one endpoint may accept and drop. Waits for all endpoints; fails if all of them fail. */
    callEverywhere: <T>(attempt: Attempt<T>): Promise<T> =>
      withDeadline((deadline) => tryEverywhere(attempt, deadline)),
  };
}

/** Moves a user and password into a header, so that no error quotes them with the URL. */
function toEndpoint(url: URL): Endpoint {
  const bare = new URL(url);
  bare.username = bare.password = "";
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (url.username || url.password) {
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
  }
  return { url: bare.href, host: url.host, headers };
}
