import type { BudgetMetrics } from "../fairness/budget-metrics.ts";
import type { Caller } from "../fairness/caller.ts";
import { inFairOrder } from "../fairness/fair-order.ts";
import type { Redis } from "../store/redis.ts";
import { blocksOf, createBatcher } from "../upstream/batcher.ts";
import { withDeadline } from "../upstream/deadline.ts";
import { isTimeout } from "../upstream/http.ts";
import { createAccountCache, type CachedAccount } from "./account-cache.ts";
import { isHandleKey, toHandleKey, type AccountKey, type SocialAccount } from "./account.ts";
import { MAX_USERS_PER_CALL, type SocialClient } from "./api-client.ts";
import type { ReadBudget } from "./read-budget.ts";
import { SocialError } from "./social-error.ts";
import { monotonicNow, msSince } from "../time/monotonic.ts";

export type AccountLookup = ReturnType<typeof createAccountLookup>;

/**
 * How long a key waits for its call to fill while calls are in flight: long, because calls are few
 * (300 in 15 minutes).
 */
const MAX_WAIT_MS = 150;
/** If a call takes a second, four at once use up 300 calls in 75 seconds. */
const MAX_CALLS = 4;
/** The network uses signed 64-bit ids, and may refuse a whole call because of a higher id. */
const MAX_NETWORK_ID = 2n ** 63n - 1n;

/**
 * Finds accounts on the social network. Merges the keys of concurrent callers into few calls, at
 * most `socialConcurrency` in flight, each of which waits for the call quota. If more keys wait than
 * fit into a call, it takes equally many of each address block. Beyond `socialQueueMax`, the newest
 * keys of the blocks with the most keys fail with `queue-full`; so do those whose call the network
 * does not allow in time. A lookup takes at most `socialTimeoutMs`, including its wait. The caller's
 * share of the `budget` pays for accounts that are not cached, or they fail with `budget-used`. When
 * several callers request an account at once, one of them pays.
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

  function refuse(): SocialError {
    metrics?.refused("social_calls", "SERVICE", 1);
    return new SocialError({ kind: "queue-full" });
  }

  const createQueue = () =>
    createBatcher<AccountKey, SocialAccount>({
      async ask(batch, answer) {
        const answers = await client.find(batch.map(({ key }) => key));
        cache.store(answers);
        batch.forEach(({ key }, i) => {
          const value = answers.get(key);
          if (value) answer(i, value);
        });
      },
      idOf: (key) => key,
      maxKeys: MAX_USERS_PER_CALL,
      maxCalls: needs.socialConcurrency ?? MAX_CALLS,
      maxWaitMs: MAX_WAIT_MS,
      joinsInFlight: true,
      policy: {
        turn: client.turn,
        inOrder: (waiting) => inFairOrder(waiting, blocksOf),
        maxWaiting: () => needs.socialQueueMax,
        refuse,
      },
    });
  /** No call has both, and the network counts their calls separately. */
  const queues = { handles: createQueue(), ids: createQueue() };

  /** What is known of a key without a call. */
  const known = (key: AccountKey): CachedAccount | undefined =>
    !isHandleKey(key) && BigInt(key) > MAX_NETWORK_ID
      ? new SocialError({ kind: "not-found" })
      : cache.get(key);

  /**
   * Asks the network for different keys. The caller's share of the budget pays for those that no
   * other request has asked for meanwhile.
   */
  async function load(
    keys: readonly AccountKey[],
    addressBlock: string,
    signal: AbortSignal,
  ): Promise<(SocialAccount | Error)[]> {
    const queue = keys.every(isHandleKey) ? queues.handles : queues.ids;
    const {
      paid: paidCount,
      refuse: refuseReads,
      settle,
    } = await budget(keys.length, addressBlock);
    // Do not await between here and `pending`: another request could then pay for the keys again.
    const fresh = keys.filter((key) => !queue.pending(key));
    const refused = fresh.slice(paidCount);
    const refusal = refuseReads(refused.length);
    const asked = keys.filter((key) => !refused.includes(key));
    const loading = queue.load(asked, { blocks: [addressBlock], signal });
    void Promise.all(fresh.slice(0, paidCount).map(async (key) => queue.pending(key))).then(settle);
    const answers = await loading;
    return keys.map((key) => {
      const answer = answers[asked.indexOf(key)] ?? refusal;
      if (!isTimeout(answer)) return answer;
      return queue.isInFlight(key) ? new SocialError({ kind: "timeout" }) : refuse();
    });
  }

  /** Finds the account of each key: in this process's cache, then in Redis, then on the network. */
  async function find(
    keys: readonly AccountKey[],
    caller?: Caller,
    startedAt = monotonicNow(),
  ): Promise<(SocialAccount | Error)[]> {
    const answers = new Map<AccountKey, SocialAccount | Error | undefined>();
    /** Reads the cache again for the keys that have no answer, and returns those it does not have. */
    function readCache(): AccountKey[] {
      for (const key of keys) answers.set(key, answers.get(key) ?? known(key));
      return [...answers.keys()].filter((key) => !answers.get(key));
    }
    let missing = readCache();
    if (missing.length > 0)
      await withDeadline(socialTimeoutMs - msSince(startedAt), async (deadline) => {
        await cache.fetchFromRedis(missing);
        missing = readCache();
        const signal = AbortSignal.any([deadline, ...(caller ? [caller.signal] : [])]);
        const accounts = await load(missing, caller?.addressBlock ?? "", signal);
        accounts.forEach((account, i) => answers.set(missing[i]!, account));
      });
    return keys.map((key) => answers.get(key)!);
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
    findByHandles: (handles: readonly string[], caller?: Caller) =>
      find(handles.map(toHandleKey), caller),

    /** The account of each canonical id, or an error. The timeout counts from `startedAt`. */
    findByIds: find,
  };
}
