import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import type { Redis } from "../upstream/redis.ts";
import { createAccountCache, type CachedAccount } from "./account-cache.ts";
import type { SocialAccount } from "./account.ts";
import { MAX_USERS_PER_CALL, type SocialAnswers, type SocialClient } from "./api-client.ts";
import { SocialError } from "./social-error.ts";

export type AccountLookup = ReturnType<typeof createAccountLookup>;

/**
 * How long handles gather at most while calls are in flight. Longer than a call takes, because the network
 * allows only 300 calls in 15 minutes.
 */
const GATHER_MS = 150;

/** The longest id that the network accepts, though 64-bit ids can have 20 digits. */
const MAX_ID_DIGITS = 19;

/** Prefix of a handle's key, so that one queue holds handles and ids. */
const AT = "@";

/**
 * Finds accounts on the social network with as few calls as possible: merges what all callers wait for into
 * calls of up to 100 keys, at most `concurrency` at once, and never asks for the same key twice at the same
 * time. Beyond `queueMax` waiting keys the newest fail with `queue-full`. Nobody waits longer than
 * `timeoutMs`, queue included.
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
    maxWaitMs: GATHER_MS,
    maxWaiting: queueMax,
    refuse: () => new SocialError({ kind: "queue-full" }),
    joinInFlight: true,
    groupOf: (key) => key.startsWith(AT),
    metrics,
  });

  async function ask(keys: readonly string[]): Promise<SocialAnswers> {
    if (!keys[0]?.startsWith(AT)) return client.findByIds(keys);
    const answers = await client.findByHandles(keys.map((key) => key.slice(AT.length)));
    cache.store(answers);
    return new Map([...answers].map(([handle, answer]) => [AT + handle, answer]));
  }

  /** Runs `find` with a signal that aborts when the caller leaves, or `timeoutMs` after `startedAt`. */
  async function withDeadline<T>(
    caller: AbortSignal | undefined,
    startedAt: number,
    find: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const end = new AbortController();
    const leave = () => {
      end.abort(caller?.reason);
    };
    const timer = setTimeout(
      () => {
        end.abort(new SocialError({ kind: "queue-timeout" }));
      },
      startedAt + timeoutMs - performance.now(),
    );
    caller?.addEventListener("abort", leave, { once: true });
    try {
      return await find(end.signal);
    } finally {
      clearTimeout(timer);
      caller?.removeEventListener("abort", leave);
    }
  }

  return {
    /** The cached account of a handle in any case, or its cached `not-found`. Makes no call. */
    cached: (handle: string): CachedAccount | undefined => cache.get(handle.toLowerCase()),

    /** The accounts of handles in any case, or an error for each without one. */
    async findByHandles(texts: readonly string[], caller?: AbortSignal): Promise<(SocialAccount | Error)[]> {
      const handles = texts.map((text) => text.toLowerCase());
      const answers = handles.map(cache.get);
      if (answers.every((answer) => answer !== undefined)) return answers;
      return withDeadline(caller, performance.now(), async (signal) => {
        await cache.fetchShared(handles.filter((_, i) => !answers[i]));
        const missing = handles.filter((handle, i) => !(answers[i] ??= cache.get(handle)));
        const keys = missing.map((handle) => AT + handle);
        const loaded = (await batcher.load(keys, signal)).values();
        return answers.map((answer) => answer ?? loaded.next().value!);
      });
    },

    /** The accounts of canonical ids, or an error for each without one. The deadline counts from `startedAt`. */
    findByIds: (
      ids: readonly string[],
      caller?: AbortSignal,
      startedAt = performance.now(),
    ): Promise<(SocialAccount | Error)[]> =>
      withDeadline(caller, startedAt, async (signal) => {
        const isAskable = (id: string) => id.length <= MAX_ID_DIGITS;
        const loaded = (await batcher.load(ids.filter(isAskable), signal)).values();
        return ids.map((id) =>
          isAskable(id) ? loaded.next().value! : new SocialError({ kind: "not-found" }),
        );
      }),
  };
}
