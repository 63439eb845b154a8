import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import type { Redis } from "../upstream/redis.ts";
import { createAccountCache, type CachedAccount } from "./account-cache.ts";
import type { SocialAccount } from "./account.ts";
import { MAX_USERS_PER_CALL, type SocialAnswers, type SocialClient } from "./api-client.ts";
import { SocialError } from "./social-error.ts";

export type AccountLookup = ReturnType<typeof createAccountLookup>;

/**
 * The longest a handle waits for its batch to fill while calls are in flight. Longer than a call takes, because
 * the network allows only 300 calls in 15 minutes.
 */
const MAX_WAIT_MS = 150;

/** The longest id that the network accepts, though 64-bit ids can have 20 digits. */
const MAX_ID_DIGITS = 19;

/** Prefix of a handle's key, because handles and ids share one queue. */
const HANDLE_PREFIX = "@";

/**
 * Finds accounts on the social network with as few calls as possible: merges concurrent lookups into calls of
 * up to 100 keys, at most `concurrency` in flight, and joins a call in flight for the same key if one of its callers
 * still waits. While `queueMax` keys wait, further keys fail with `queue-full`. A lookup takes at most `timeoutMs`, including the queue.
 *
 * Accounts found by handle are cached for `cacheSeconds`, with `redis` for all replicas. Accounts found by id
 * are not cached, because their handle may change.
 */
export function createAccountLookup(needs: {
  client: Pick<SocialClient, "findByHandles" | "findByIds">;
  concurrency: number;
  queueMax: number;
  timeoutMs: number;
  cacheSeconds: number;
  apiUrl: URL;
  redis?: Redis | undefined;
  metrics?: BatchMetrics | undefined;
}) {
  const { client, concurrency, queueMax, timeoutMs, cacheSeconds, apiUrl, redis, metrics } = needs;
  const cache = createAccountCache({ apiUrl, cacheSeconds, redis });
  const batcher = createBatcher<SocialAccount>({
    ask,
    maxKeys: MAX_USERS_PER_CALL,
    maxCalls: concurrency,
    maxWaitMs: MAX_WAIT_MS,
    maxWaiting: queueMax,
    refuse: () => new SocialError({ kind: "queue-full" }),
    joinInFlight: true,
    groupOf: (key) => key.startsWith(HANDLE_PREFIX),
    metrics,
  });

  async function ask(keys: readonly string[]): Promise<SocialAnswers> {
    if (!keys[0]?.startsWith(HANDLE_PREFIX)) return client.findByIds(keys);
    const answers = await client.findByHandles(keys.map((key) => key.slice(HANDLE_PREFIX.length)));
    cache.store(answers);
    return new Map([...answers].map(([handle, answer]) => [HANDLE_PREFIX + handle, answer]));
  }

  /** Runs `find` with a signal that aborts with the caller's, or `timeoutMs` after `startedAt`. */
  async function withDeadline<T>(
    caller: AbortSignal | undefined,
    startedAt: number,
    find: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const stop = new AbortController();
    const abort = () => {
      stop.abort(caller?.reason);
    };
    const timer = setTimeout(
      () => {
        stop.abort(new SocialError({ kind: "lookup-timeout" }));
      },
      startedAt + timeoutMs - performance.now(),
    );
    caller?.addEventListener("abort", abort, { once: true });
    try {
      return await find(stop.signal);
    } finally {
      clearTimeout(timer);
      caller?.removeEventListener("abort", abort);
    }
  }

  return {
    /** The cached account or cached `not-found` of a handle, which is case-insensitive. Makes no call. */
    cached: (handle: string): CachedAccount | undefined => cache.get(handle.toLowerCase()),

    /** The account of each case-insensitive handle, or an error. */
    async findByHandles(texts: readonly string[], caller?: AbortSignal): Promise<(SocialAccount | Error)[]> {
      const handles = texts.map((text) => text.toLowerCase());
      const answers = handles.map(cache.get);
      if (answers.every((answer) => answer !== undefined)) return answers;
      return withDeadline(caller, performance.now(), async (signal) => {
        await cache.fetchShared(handles.filter((_, i) => !answers[i]));
        const missing = handles.filter((handle, i) => !(answers[i] ??= cache.get(handle)));
        const keys = missing.map((handle) => HANDLE_PREFIX + handle);
        const loaded = (await batcher.load(keys, signal)).values();
        return answers.map((answer) => answer ?? loaded.next().value!);
      });
    },

    /** The account of each canonical id, or an error. The timeout counts from `startedAt`. */
    findByIds: (
      ids: readonly string[],
      caller?: AbortSignal,
      startedAt = performance.now(),
    ): Promise<(SocialAccount | Error)[]> =>
      withDeadline(caller, startedAt, async (signal) => {
        const isAccepted = (id: string) => id.length <= MAX_ID_DIGITS;
        const loaded = (await batcher.load(ids.filter(isAccepted), signal)).values();
        return ids.map((id) =>
          isAccepted(id) ? loaded.next().value! : new SocialError({ kind: "not-found" }),
        );
      }),
  };
}
