import type { BudgetMetrics } from "../fairness/budget-metrics.ts";
import type { Caller } from "../fairness/caller.ts";
import { inFairOrder } from "../fairness/fair-order.ts";
import type { Redis } from "../store/redis.ts";
import { blocksOf, createBatcher } from "../upstream/batcher.ts";
import { withDeadline } from "../upstream/deadline.ts";
import { isTimeout } from "../upstream/http.ts";
import { createAccountCache, type CachedAccount } from "./account-cache.ts";
import { isHandleKey, type AccountKey, type SocialAccount } from "./account.ts";
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
    metrics?.refused("social_calls", "SERVICE");
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
  async function ask(
    keys: readonly AccountKey[],
    addressBlock: string,
    signal: AbortSignal,
  ): Promise<(SocialAccount | Error)[]> {
    const queue = keys.every(isHandleKey) ? queues.handles : queues.ids;
    const reads = await budget(keys.length, addressBlock);
    // Do not await between here and `pending`: another request could then pay for the keys again.
    const fresh = keys.filter((key) => !queue.pending(key));
    const paid = fresh.slice(0, reads.paid);
    const refusals = new Map(fresh.slice(reads.paid).map((key) => [key, reads.refuse()]));
    const asked = keys.filter((key) => !refusals.has(key));
    const loading = queue.load(asked, { blocks: [addressBlock], signal });
    void Promise.all(paid.map(async (key) => queue.pending(key))).then(reads.settle);
    const answers = await loading;
    return keys.map((key) => {
      const answer = refusals.get(key) ?? answers[asked.indexOf(key)]!;
      if (!isTimeout(answer)) return answer;
      return queue.isInFlight(key) ? new SocialError({ kind: "timeout" }) : refuse();
    });
  }

  return {
    /** The number of accounts that wait for a call. */
    waiting: () => queues.handles.waiting() + queues.ids.waiting(),

    describeCache: cache.describe,

    /** The account or `not-found` that this process has cached. Makes no call. */
    cached: cache.get,

    /**
     * Finds the account of each key, or an error: in this process's cache, then in Redis, then on
     * the network. The keys differ, and are all handles or all ids. The timeout counts from
     * `startedAt`.
     */
    async find(
      keys: readonly AccountKey[],
      { addressBlock, signal }: Caller,
      startedAt = monotonicNow(),
    ): Promise<(SocialAccount | Error)[]> {
      await cache.fetchFromRedis(keys.filter((key) => !known(key)));
      const cached = keys.map(known);
      const missing = keys.filter((_key, i) => !cached[i]);
      const load = (deadline: AbortSignal) =>
        ask(missing, addressBlock, AbortSignal.any([deadline, signal]));
      const loaded =
        missing.length > 0 ? await withDeadline(socialTimeoutMs - msSince(startedAt), load) : [];
      return keys.map((key, i) => cached[i] ?? loaded[missing.indexOf(key)]!);
    },
  };
}
