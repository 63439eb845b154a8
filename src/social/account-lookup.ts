import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import type { BudgetMetrics } from "../fairness/budget-metrics.ts";
import type { Redis } from "../store/redis.ts";
import { createAccountCache, type CachedAccount } from "./account-cache.ts";
import { toAccountName, type AccountName, type SocialAccount } from "./account.ts";
import type { SocialClient } from "./api-client.ts";
import { createLookupQueue } from "./lookup-queue.ts";
import type { ReadBudget } from "./read-budget.ts";
import { SocialError } from "./social-error.ts";

export type AccountLookup = ReturnType<typeof createAccountLookup>;

/** Who looks up accounts. */
export interface Caller {
  /** Aborts when the caller no longer needs the result. */
  readonly signal: AbortSignal;
  /** Callers in the same block share one part of the queue and of the budget. */
  readonly addressBlock: string;
}

/**
 * Names that have waited for this part of `socialTimeoutMs` are refused: the rest would not be enough for the call.
 * Above the longest wait for a turn in the call quota.
 */
const SEND_WITHIN = 0.9;

/** The network's ids are signed 64-bit integers. It may refuse the whole call for a higher one. */
const MAX_NETWORK_ID = 2n ** 63n - 1n;

/**
 * Finds accounts on the social network with as few calls as possible, through {@link createLookupQueue}, which may
 * refuse names with `queue-full`. A lookup takes at most `socialTimeoutMs`, including the queue.
 *
 * Names that are not cached are paid from the caller's part of the `budget`, or fail with `budget-used`. When
 * several callers request a name at once, the first pays.
 *
 * Accounts are cached for `socialCacheSeconds`, with `redis` for all replicas: by handle if found by handle, by id if found
 * by id.
 */
export function createAccountLookup(needs: {
  client: Pick<SocialClient, "turn" | "findByHandles" | "findByIds">;
  budget: ReadBudget;
  socialConcurrency: number;
  socialQueueMax: number;
  socialTimeoutMs: number;
  socialCacheSeconds: number;
  socialApiUrl: URL;
  redis?: Redis | undefined;
  metrics?: { readonly batches: BatchMetrics; readonly budgets: BudgetMetrics } | undefined;
}) {
  const { client, budget, socialTimeoutMs, metrics } = needs;
  const caches = {
    handle: createAccountCache({ ...needs, by: "handle" }),
    id: createAccountCache({ ...needs, by: "id" }),
  };
  const queue = createLookupQueue({
    ...needs,
    async ask(by, names) {
      const answers = await (by === "handle" ? client.findByHandles(names) : client.findByIds(names));
      caches[by].store(answers);
      return answers;
    },
    turn: client.turn,
    refuse() {
      metrics?.budgets.refused("social_calls", "SERVICE", 1);
      return new SocialError({ kind: "queue-full" });
    },
    metrics: metrics?.batches,
  });

  /** Reservations in progress, by key: others who request it wait, because they need not pay if one succeeds. */
  const reserving = new Map<string, Promise<unknown>>();
  const reservationsOf = (names: readonly AccountName[]) =>
    names.flatMap(({ key }) => reserving.get(key) ?? []);

  /** Joins the calls of pending names; the others are paid from the caller's part of the budget. */
  async function load(
    names: readonly AccountName[],
    addressBlock: string,
    signal: AbortSignal,
    startedAt: number,
  ): Promise<(SocialAccount | Error)[]> {
    while (!signal.aborted && reservationsOf(names).length > 0) await Promise.all(reservationsOf(names));
    if (signal.aborted) return names.map(() => signal.reason as Error);

    const request = { addressBlock, signal, sendBefore: startedAt + SEND_WITHIN * socialTimeoutMs };
    const unique = new Map(names.map((name) => [name.key, name])).values();
    const { pending = [], fresh = [] } = Object.groupBy(unique, (name) =>
      queue.isPending(name) ? "pending" : "fresh",
    );
    const joined = queue.load(pending, request);
    const reservation = budget(fresh, addressBlock);
    for (const { key } of fresh) reserving.set(key, reservation);
    const { paid, refusal, onEnd } = await reservation;
    // No await between these: a name that is neither being reserved nor pending would be paid twice.
    for (const { key } of fresh) reserving.delete(key);
    const requested = queue.load(paid, request, onEnd);

    const loaded = (await Promise.all([joined, requested])).flat();
    const answers = new Map([...pending, ...paid].map(({ key }, i) => [key, loaded[i]!]));
    return names.map(({ key }) => answers.get(key) ?? refusal!);
  }

  /** The account of each name: cached in this process, then for all replicas, then read from the network. */
  async function find(
    by: AccountName["by"],
    names: readonly string[],
    caller: Caller | undefined,
    startedAt = performance.now(),
  ): Promise<(SocialAccount | Error)[]> {
    const cache = caches[by];
    const answers = names.map(cache.get);
    if (answers.every((answer) => answer !== undefined)) return answers;
    const deadline = new AbortController();
    const timer = setTimeout(
      () => {
        deadline.abort(new SocialError({ kind: "lookup-timeout" }));
      },
      startedAt + socialTimeoutMs - performance.now(),
    );
    try {
      await cache.fetchFromRedis(names.filter((_, i) => !answers[i]));
      const missing = names.filter((name, i) => !(answers[i] ??= cache.get(name)));
      const wanted = missing.map((name) => toAccountName(by, name));
      const signals = [deadline.signal, ...(caller ? [caller.signal] : [])];
      const signal = AbortSignal.any(signals);
      const loaded = (await load(wanted, caller?.addressBlock ?? "", signal, startedAt)).values();
      return answers.map((answer) => answer ?? loaded.next().value!);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    /** The cached account or cached `not-found` of a handle, which is case-insensitive. Makes no call. */
    cached: (handle: string): CachedAccount | undefined => caches.handle.get(handle.toLowerCase()),

    /** The cached account or cached `not-found` of a canonical id. Makes no call. */
    cachedById: caches.id.get,

    /** The account of each case-insensitive handle, or an error. */
    findByHandles: (handles: readonly string[], caller?: Caller): Promise<(SocialAccount | Error)[]> =>
      find(
        "handle",
        handles.map((handle) => handle.toLowerCase()),
        caller,
      ),

    /**
     * The account of each canonical id, or an error: `not-found` without a call for an id above the network's highest. The
     * timeout counts from `startedAt`.
     */
    async findByIds(
      ids: readonly string[],
      caller?: Caller,
      startedAt?: number,
    ): Promise<(SocialAccount | Error)[]> {
      const canExist = (id: string) => BigInt(id) <= MAX_NETWORK_ID;
      const found = (await find("id", ids.filter(canExist), caller, startedAt)).values();
      return ids.map((id) => (canExist(id) ? found.next().value! : new SocialError({ kind: "not-found" })));
    },
  };
}
