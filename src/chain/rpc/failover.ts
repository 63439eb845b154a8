import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import { isBehind, isPassing } from "./rpc-error.ts";

/** One JSON-RPC address. `host` is all of it that is ever shown: the rest may hold a key. */
export interface Endpoint {
  readonly url: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Makes one attempt of a call at one endpoint; rejects with an {@link RpcError}. */
export type Attempt<T> = (endpoint: Endpoint, signal: AbortSignal) => Promise<T>;

interface Health {
  readonly endpoint: Endpoint;
  failures: number;
  /** Until then others are asked first. */
  restsUntil: number;
}

const FIRST_REST_MS = 500;
const MAX_REST_MS = 30_000;
/** The part of the deadline after which a call is tried at the next endpoint as well. */
const SLOW_AFTER = 1 / 5;
/** Before all are asked again: somewhere between these, so that not all callers come back at once. */
const PAUSE_MS = [50, 150] as const;
/** About a slot, for nodes that have to catch up. */
const CATCH_UP_MS = [200, 400] as const;

/**
 * Makes calls at several endpoints, the first preferred. One that fails, is rate limited, is behind or is
 * slow rests for half a second, then for longer, up to half a minute; resting ones are asked last, and the
 * first success ends the rest. A slow call is tried at the next endpoint as well, the first answer counts,
 * and the others are aborted. When all have failed, they are asked once more after a short pause, or again
 * and again while they are only behind. All of it takes `timeoutMs` at most.
 */
export function createEndpoints(needs: { urls: readonly URL[]; timeoutMs: number; log: Logger }) {
  const { timeoutMs, log } = needs;
  const known: Health[] = needs.urls.map((url) => ({
    endpoint: toEndpoint(url),
    failures: 0,
    restsUntil: 0,
  }));

  function inOrder(): Health[] {
    const now = performance.now();
    const rests = ({ restsUntil }: Health) => restsUntil > now;
    return [...known.filter((health) => !rests(health)), ...known.filter(rests)];
  }

  function rest(health: Health, cause: unknown): void {
    const { host } = health.endpoint;
    if (health.failures === 0 && known.length > 1)
      log.warn({ host, err: cause }, "a chain endpoint fails: others come first");
    const restMs = Math.min(FIRST_REST_MS * 2 ** health.failures, MAX_REST_MS);
    health.failures++;
    health.restsUntil = performance.now() + restMs;
  }

  function recover(health: Health): void {
    if (health.failures > 0) log.info({ host: health.endpoint.host }, "a chain endpoint works again");
    health.failures = 0;
    health.restsUntil = 0;
  }

  /** Asks one endpoint after the other until one answers, starting the next early when one is slow. */
  function askAll<T>(attempt: Attempt<T>, deadline: AbortSignal): Promise<T> {
    const candidates = inOrder();
    // One signal, let go of when it is decided: AbortSignal.any keeps what it is given from being collected.
    const stop = new AbortController();
    const open = new Set<Health>();
    let next = 0;
    let isDecided = false;
    const giveUp = () => {
      stop.abort(deadline.reason);
    };
    if (deadline.aborted) giveUp();
    else deadline.addEventListener("abort", giveUp, { once: true });

    function decide(): void {
      isDecided = true;
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
              if (isDecided) return;
              // Whoever was asked before and has not answered yet is slow.
              const before = candidates.slice(0, candidates.indexOf(health));
              for (const other of before) if (open.has(other)) rest(other, "slow");
              decide();
              recover(health);
              resolve(result);
            },
            (reason: unknown) => {
              const error = reason as Error;
              if (isDecided) return;
              if (isPassing(error)) {
                rest(health, error);
                if (next < candidates.length) start();
              }
              // An attempt that is still open may yet do better.
              if (open.size > 0) return;
              decide();
              reject(error);
            },
          );
      }
      start();
    });
  }

  /** Asks once more after a pause, and while nodes are only behind again and again. */
  async function askUntil<T>(attempt: Attempt<T>, deadline: AbortSignal): Promise<T> {
    for (let isLast = false; ;) {
      try {
        return await askAll(attempt, deadline);
      } catch (error) {
        if (isLast || !isPassing(error) || deadline.aborted) throw error;
        const [least, most] = isBehind(error) ? CATCH_UP_MS : PAUSE_MS;
        isLast = !isBehind(error);
        await sleep(least + Math.random() * (most - least));
      }
    }
  }

  return {
    async call<T>(attempt: Attempt<T>): Promise<T> {
      const deadline = new AbortController();
      // A timer that is cleared: AbortSignal.timeout would keep all of the call until the time is up.
      const timer = setTimeout(() => {
        deadline.abort(new DOMException(`no answer within ${timeoutMs} ms`, "TimeoutError"));
      }, timeoutMs);
      try {
        return await askUntil(attempt, deadline.signal);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** A user and password go into a header, so that no error quotes them with the address. */
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
