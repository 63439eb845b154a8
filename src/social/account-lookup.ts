import type { BatchMetrics } from "../upstream/batch-metrics.ts";
import { createBatcher } from "../upstream/batcher.ts";
import type { BudgetMetrics } from "../upstream/budget/budget-metrics.ts";
import type { Redis } from "../upstream/redis.ts";
import { createAccountCache, type CachedAccount } from "./account-cache.ts";
import type { SocialAccount } from "./account.ts";
import { MAX_USERS_PER_CALL, type SocialClient } from "./api-client.ts";
import { HANDLE_PREFIX, type ReadBudget } from "./read-budget.ts";
import { SocialError } from "./social-error.ts";

export type AccountLookup = ReturnType<typeof createAccountLookup>;

/** Where accounts are found by one kind of name. */
interface Source {
  readonly cache: ReturnType<typeof createAccountCache>;
  readonly read: SocialClient["findByHandles"];
  /** Begins the budget's key of a name. */
  readonly prefix: string;
}

interface Key {
  readonly source: Source;
  readonly name: string;
  /** The budget's key. */
  readonly id: string;
}

/** Who looks up accounts. */
export interface Caller {
  /** Aborts when the caller no longer needs the result. */
  readonly signal: AbortSignal;
  /** Callers in the same block share one part of the queue and of the budget. */
  readonly addressBlock: string;
}

/**
 * The longest a handle waits for its batch to fill while calls are in flight. Longer than a call takes, because
 * the network allows only 300 calls in 15 minutes.
 */
const MAX_WAIT_MS = 150;

/**
 * Keys that have waited for this part of `timeoutMs` are refused: the rest would not be enough for the call.
 * Above the longest wait for a turn in the call quota.
 */
const SEND_WITHIN = 0.9;

/** The longest id that the network accepts, though 64-bit ids can have 20 digits. */
const MAX_ID_DIGITS = 19;

/**
 * Finds accounts on the social network with as few calls as possible: merges concurrent lookups into calls of
 * up to 100 keys, at most `concurrency` in flight, and joins a call in flight for the same key if one of its callers
 * still waits. Each call waits for its turn in the call quota. When more than `queueMax` keys wait, keys of the
 * callers with the most fail with `queue-full`. A lookup takes at most `timeoutMs`, including the queue.
 *
 * Keys that are not cached are paid from the caller's part of the `budget`, or fail with `budget-used`. When
 * several callers request a key at once, the first pays.
 *
 * Accounts are cached for `cacheSeconds`, with `redis` for all replicas: by handle if found by handle, by id if found
 * by id.
 */
export function createAccountLookup(needs: {
  client: Pick<SocialClient, "turn" | "findByHandles" | "findByIds">;
  budget: ReadBudget;
  concurrency: number;
  queueMax: number;
  timeoutMs: number;
  cacheSeconds: number;
  apiUrl: URL;
  redis?: Redis | undefined;
  metrics?: { readonly batches: BatchMetrics; readonly budgets: BudgetMetrics } | undefined;
}) {
  const { client, budget, concurrency, queueMax, timeoutMs, metrics } = needs;
  const byHandle: Source = {
    cache: createAccountCache({ ...needs, by: "handle" }),
    read: client.findByHandles,
    prefix: HANDLE_PREFIX,
  };
  const byId: Source = {
    cache: createAccountCache({ ...needs, by: "id" }),
    read: client.findByIds,
    prefix: "",
  };
  const batcher = createBatcher<Key, SocialAccount>({
    async ask(keys) {
      const { cache, read } = keys[0]!.source;
      const answers = await read(keys.map(({ name }) => name));
      cache.store(answers);
      return keys.map(({ name }) => answers.get(name));
    },
    idOf: ({ id }) => id,
    maxKeys: MAX_USERS_PER_CALL,
    maxCalls: concurrency,
    maxWaitMs: MAX_WAIT_MS,
    scarce: {
      turn: client.turn,
      groupOf: ({ source }) => source,
      maxWaiting: queueMax,
      refuse() {
        metrics?.budgets.refused("social_calls", "SERVICE", 1);
        return new SocialError({ kind: "queue-full" });
      },
    },
    metrics: metrics?.batches,
  });

  /** Reservations in progress, by key: others who request the key wait, because they need not pay if one succeeds. */
  const reserving = new Map<string, Promise<unknown>>();
  const reservationsOf = (keys: readonly Key[]) => keys.flatMap(({ id }) => reserving.get(id) ?? []);

  /** Joins the calls of pending keys; the other keys are paid from the caller's part of the budget. */
  async function load(
    keys: readonly Key[],
    caller: Caller | undefined,
    signal: AbortSignal,
    startedAt: number,
  ): Promise<(SocialAccount | Error)[]> {
    while (!signal.aborted && reservationsOf(keys).length > 0) await Promise.all(reservationsOf(keys));
    if (signal.aborted) return keys.map(() => signal.reason as Error);

    const addressBlock = caller?.addressBlock ?? "";
    const request = { addressBlock, signal, sendBefore: startedAt + SEND_WITHIN * timeoutMs };
    const loads = new Map<string, Promise<SocialAccount | Error>>();
    const fresh = new Map<string, Key>();
    for (const key of keys) {
      if (batcher.isPending(key)) loads.set(key.id, batcher.load(key, request));
      else fresh.set(key.id, key);
    }
    const ids = [...fresh.keys()];
    const reservation = budget(ids, addressBlock);
    for (const id of ids) reserving.set(id, reservation);
    const { paid, refusal, onEnd } = await reservation;
    // No await between these: a key that is neither being reserved nor pending would be paid twice.
    for (const id of ids) reserving.delete(id);
    for (const id of paid)
      loads.set(id, batcher.load(fresh.get(id)!, { ...request, onEnd: onEnd.bind(undefined, id) }));
    return Promise.all(keys.map(async ({ id }) => (await loads.get(id)) ?? refusal!));
  }

  /** Runs `find` with a signal that aborts with the caller's, or `timeoutMs` after `startedAt`. */
  async function withDeadline<T>(
    caller: Caller | undefined,
    startedAt: number,
    find: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const stop = new AbortController();
    const abort = () => {
      stop.abort(caller?.signal.reason);
    };
    const timer = setTimeout(
      () => {
        stop.abort(new SocialError({ kind: "lookup-timeout" }));
      },
      startedAt + timeoutMs - performance.now(),
    );
    // A signal that has aborted before tells no listener.
    if (caller?.signal.aborted) abort();
    caller?.signal.addEventListener("abort", abort, { once: true });
    try {
      return await find(stop.signal);
    } finally {
      clearTimeout(timer);
      caller?.signal.removeEventListener("abort", abort);
    }
  }

  /** The account of each name: cached in this process, then for all replicas, then read from the network. */
  async function find(
    names: readonly string[],
    source: Source,
    caller: Caller | undefined,
    startedAt = performance.now(),
  ): Promise<(SocialAccount | Error)[]> {
    const { cache, prefix } = source;
    const answers = names.map(cache.get);
    if (answers.every((answer) => answer !== undefined)) return answers;
    return withDeadline(caller, startedAt, async (signal) => {
      await cache.fetchFromRedis(names.filter((_, i) => !answers[i]));
      const missing = names.filter((name, i) => !(answers[i] ??= cache.get(name)));
      const keys = missing.map((name) => ({ source, name, id: prefix + name }));
      const loaded = (await load(keys, caller, signal, startedAt)).values();
      return answers.map((answer) => answer ?? loaded.next().value!);
    });
  }

  return {
    /** The cached account or cached `not-found` of a handle, which is case-insensitive. Makes no call. */
    cached: (handle: string): CachedAccount | undefined => byHandle.cache.get(handle.toLowerCase()),

    /** The cached account or cached `not-found` of a canonical id. Makes no call. */
    cachedById: byId.cache.get,

    /** The account of each case-insensitive handle, or an error. */
    findByHandles: (handles: readonly string[], caller?: Caller): Promise<(SocialAccount | Error)[]> =>
      find(
        handles.map((handle) => handle.toLowerCase()),
        byHandle,
        caller,
      ),

    /** The account of each canonical id, or an error. The timeout counts from `startedAt`. */
    async findByIds(
      ids: readonly string[],
      caller?: Caller,
      startedAt?: number,
    ): Promise<(SocialAccount | Error)[]> {
      const isAccepted = (id: string) => id.length <= MAX_ID_DIGITS;
      const found = (await find(ids.filter(isAccepted), byId, caller, startedAt)).values();
      return ids.map((id) => (isAccepted(id) ? found.next().value! : new SocialError({ kind: "not-found" })));
    },
  };
}
