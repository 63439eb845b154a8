import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import { ContractError } from "../contract/errors.ts";
import type { Redis } from "../upstream/redis.ts";
import { createAccountCache, type KnownAccount } from "./account-cache.ts";
import type { SocialAccount } from "./account.ts";
import { MAX_USERS_A_CALL, type SocialAnswers, type SocialClient } from "./api-client.ts";

export type Directory = ReturnType<typeof createDirectory>;

/**
 * How long names that come while calls are under way gather at most. Longer than a call takes, for the
 * network allows 300 calls in 15 minutes.
 */
const GATHER_MS = 150;

/** The longest id that the network takes in a question, though ids of 64 bits have 20 digits. */
const MAX_ID_DIGITS = 19;

/** Before a handle's key, so that one queue holds handles and ids. */
const AT = "@";

/**
 * Finds accounts on the social network with as few calls as can be: what all callers wait for is merged
 * into calls of up to 100, at most `concurrency` at once, and nothing is asked twice at the same time.
 * Beyond `queueMax` waiting accounts the newest are answered SERVICE_BUSY. Nobody waits longer than
 * `timeoutMs`, in the queue and for the answer together.
 *
 * What a handle was found to be is remembered, for `cacheSeconds` and with `redis` for all replicas. An
 * account found by its id is not kept: the id stays, but its handle may change.
 */
export function createDirectory(needs: {
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
    maxKeys: MAX_USERS_A_CALL,
    maxCalls: concurrency,
    maxWaitMs: GATHER_MS,
    maxWaiting: queueMax,
    refuse: () => new ContractError("SERVICE_BUSY"),
    joinUnderWay: true,
    groupOf: (key) => key.startsWith(AT),
    metrics,
  });

  async function ask(keys: readonly string[]): Promise<SocialAnswers> {
    if (!keys[0]?.startsWith(AT)) return client.findByIds(keys);
    const answers = await client.findByHandles(keys.map((key) => key.slice(AT.length)));
    cache.remember(answers);
    return new Map([...answers].map(([handle, answer]) => [AT + handle, answer]));
  }

  /** Runs `find` with a signal that ends when its caller goes away, or has waited long enough. */
  async function within<T>(
    caller: AbortSignal | undefined,
    find: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const end = new AbortController();
    const leave = () => {
      end.abort(caller?.reason);
    };
    const timer = setTimeout(() => {
      const cause = new Error("the social network's queue did not move in time");
      end.abort(new ContractError("SOCIAL_API_UNAVAILABLE", { cause }));
    }, timeoutMs);
    caller?.addEventListener("abort", leave, { once: true });
    try {
      return await find(end.signal);
    } finally {
      clearTimeout(timer);
      caller?.removeEventListener("abort", leave);
    }
  }

  return {
    /** The account of a handle, in whatever case, or why there is none, where that is known; asks nobody. */
    known: (handle: string): KnownAccount | undefined => cache.get(handle.toLowerCase()),

    /** The accounts of handles, in whatever case, or an error for each that has none. */
    async findByHandles(texts: readonly string[], caller?: AbortSignal): Promise<(SocialAccount | Error)[]> {
      const handles = texts.map((text) => text.toLowerCase());
      const answers = handles.map(cache.get);
      if (answers.every((answer) => answer !== undefined)) return answers;
      return within(caller, async (signal) => {
        await cache.learn(handles.filter((_, i) => !answers[i]));
        const missing = handles.filter((handle, i) => !(answers[i] ??= cache.get(handle)));
        const loaded = (
          await batcher.load(
            missing.map((handle) => AT + handle),
            signal,
          )
        ).values();
        return answers.map((answer) => answer ?? loaded.next().value!);
      });
    },

    /** The accounts of canonical ids, or an error for each that has none. */
    findByIds: (ids: readonly string[], caller?: AbortSignal): Promise<(SocialAccount | Error)[]> =>
      within(caller, async (signal) => {
        const isAskable = (id: string) => id.length <= MAX_ID_DIGITS;
        const loaded = (await batcher.load(ids.filter(isAskable), signal)).values();
        return ids.map((id) =>
          isAskable(id) ? loaded.next().value! : new ContractError("SOCIAL_NOT_FOUND"),
        );
      }),
  };
}
