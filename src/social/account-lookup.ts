import type { BudgetMetrics } from "../fairness/budget-metrics.ts";
import type { Caller } from "../fairness/caller.ts";
import { reasonOf, toError } from "../observability/thrown.ts";
import type { Redis } from "../store/redis.ts";
import { createAccountCache, type CachedAccount } from "./account-cache.ts";
import { isHandleKey, toHandleKey, type AccountKey, type SocialAccount } from "./account.ts";
import type { SocialClient } from "./api-client.ts";
import { createLookupQueue } from "./lookup-queue.ts";
import type { ReadBudget } from "./read-budget.ts";
import { SocialError } from "./social-error.ts";
import { addMs, monotonicNow, type MonotonicTime, msSince } from "../time/monotonic.ts";

export type AccountLookup = ReturnType<typeof createAccountLookup>;

/**
 * An account that has waited for this fraction of `socialTimeoutMs` is refused: the rest is too
 * short for the call. Must be above `WAIT_FRACTION` of the call quota.
 */
const SEND_WITHIN = 0.9;

/** The network uses signed 64-bit ids, and may refuse a whole call because of a higher id. */
const MAX_NETWORK_ID = 2n ** 63n - 1n;

/**
 * Finds accounts on the social network in batches. A lookup takes at most `socialTimeoutMs`,
 * including its time in the queue. The queue may refuse keys with `queue-full`. The caller's share
 * of the `budget` pays for accounts that are not cached, or they fail with `budget-used`. When
 * several callers request an account at once, the first pays.
 */
export function createAccountLookup(needs: {
  client: Pick<SocialClient, "turn" | "find">;
  budget: ReadBudget;
  socialConcurrency?: number;
  socialQueueMax: number;
  socialTimeoutMs: number;
  socialCacheSeconds: number;
  socialApiUrl: URL;
  redis?: Redis | undefined;
  metrics?: BudgetMetrics;
}) {
  const { client, budget, socialTimeoutMs, metrics } = needs;
  const cache = createAccountCache(needs);
  const createQueue = () =>
    createLookupQueue({
      ...needs,
      async ask(keys) {
        const answers = await client.find(keys);
        cache.store(answers);
        return answers;
      },
      turn: client.turn,
      refuse() {
        metrics?.refused("social_calls", "SERVICE", 1);
        return new SocialError({ kind: "queue-full" });
      },
    });
  /** No call has both, and the network counts their calls separately. */
  const queues = { handles: createQueue(), ids: createQueue() };

  /**
   * Keys whose payment is being reserved. Other requests for such a key wait, and then join its
   * call for free.
   */
  const reserving = new Map<AccountKey, Promise<unknown>>();

  /**
   * Joins the calls of pending keys, and pays for the other keys from the caller's share of the
   * budget.
   */
  async function load(
    keys: readonly AccountKey[],
    addressBlock: string,
    signal: AbortSignal,
    startedAt: MonotonicTime,
  ): Promise<(SocialAccount | Error)[]> {
    const reservations = () => keys.flatMap((key) => reserving.get(key) ?? []);
    while (!signal.aborted && reservations().length > 0) await Promise.all(reservations());
    if (signal.aborted) return keys.map(() => reasonOf(signal));

    const queue = keys.every(isHandleKey) ? queues.handles : queues.ids;
    const request = {
      blocks: [addressBlock],
      signal,
      sendBefore: addMs(startedAt, SEND_WITHIN * socialTimeoutMs),
    };
    const unique = [...new Set(keys)];
    const pending = unique.filter(queue.isPending);
    const fresh = unique.filter((key) => !queue.isPending(key));
    const joining = queue.load(pending, request);
    // Never rejects: a failed payment fails its keys, and the requests that wait for them pay.
    const reservation = budget(fresh.length, addressBlock).catch((error: unknown) => ({
      paid: 0,
      refusal: toError(error),
      onEnd: undefined,
    }));
    for (const key of fresh) reserving.set(key, reservation);
    const { paid: paidCount, refusal, onEnd } = await reservation;
    // Do not await between `delete` and `load`: another request could then pay for the keys again.
    for (const key of fresh) reserving.delete(key);
    const paying = queue.load(fresh.slice(0, paidCount), { ...request, onEnd });
    const answers = [...(await joining), ...(await paying)];
    const answered = [...pending, ...fresh];
    return keys.map((key) => answers[answered.indexOf(key)] ?? refusal!);
  }

  /** Finds the account of each key: in this process's cache, then in Redis, then on the network. */
  async function find(
    keys: readonly AccountKey[],
    caller: Caller | undefined,
    startedAt = monotonicNow(),
  ): Promise<(SocialAccount | Error)[]> {
    const answers = keys.map(cache.get);
    if (answers.every((answer) => answer !== undefined)) return answers;
    const deadline = new AbortController();
    const timer = setTimeout(
      () => {
        deadline.abort(new SocialError({ kind: "lookup-timeout" }));
      },
      socialTimeoutMs - msSince(startedAt),
    );
    try {
      await cache.fetchFromRedis(keys.filter((_, i) => !answers[i]));
      const missing = keys.filter((key, i) => !(answers[i] ??= cache.get(key)));
      const signal = AbortSignal.any([deadline.signal, ...(caller ? [caller.signal] : [])]);
      const loadedAccounts = (
        await load(missing, caller?.addressBlock ?? "", signal, startedAt)
      ).values();
      return answers.map((answer) => answer ?? loadedAccounts.next().value!);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    /** The number of accounts that wait for a call. */
    waiting: () => queues.handles.waiting() + queues.ids.waiting(),

    describeCache: cache.describe,

    /** The cached account or cached `not-found` of a case-insensitive handle. Makes no call. */
    cached: (handle: string): CachedAccount | undefined => cache.get(toHandleKey(handle)),

    /** As `cached`, by canonical id. */
    cachedById: cache.get,

    /** The account of each case-insensitive handle, or an error. */
    findByHandles: (
      handles: readonly string[],
      caller?: Caller,
    ): Promise<(SocialAccount | Error)[]> => find(handles.map(toHandleKey), caller),

    /** The account of each canonical id, or an error. The timeout counts from `startedAt`. */
    async findByIds(
      ids: readonly string[],
      caller?: Caller,
      startedAt?: MonotonicTime,
    ): Promise<(SocialAccount | Error)[]> {
      const canExist = (id: string) => BigInt(id) <= MAX_NETWORK_ID;
      const foundAccounts = (await find(ids.filter(canExist), caller, startedAt)).values();
      return ids.map((id) =>
        canExist(id) ? foundAccounts.next().value! : new SocialError({ kind: "not-found" }),
      );
    },
  };
}
