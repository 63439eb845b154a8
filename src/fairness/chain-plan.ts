import { AsyncLocalStorage } from "node:async_hooks";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import { createLruCache } from "../store/lru-cache.ts";
import { LONG_AGO, monotonicNow, msSince, type MonotonicTime } from "../time/monotonic.ts";
import type { BudgetMetrics } from "./budget-metrics.ts";
import { toWideBlock, TRUSTED_BLOCK, type BudgetScope, type Shortage } from "./budget.ts";

/** Each use's floor: the fraction of the plan that no other use can take. */
const FLOORS = { lookups: 3 / 8, collects: 3 / 8, histories: 7 / 32, streams: 1 / 32 };
export type Use = keyof typeof FLOORS;
const USES = Object.keys(FLOORS) as Use[];
/** The most of the plan in any minute, for an IPv4 /24, an IPv6 /48, or an IPv6 /32. */
const BLOCK_SHARE = 1 / 4;
/** For all trusted callers together. */
const TRUSTED_SHARE = 1 / 2;
const SHARE_SECONDS = 60;
/** The fraction of a second's calls that may be made at once. */
const BURST = 1 / 4;
/** How long a call counts: what a block has taken fades by a factor of e in this time. */
const FADE_SECONDS = 20;
/** As many calls may wait as are made in this time, but at least the calls of two callers. */
const MAX_WAIT_SECONDS = 2;
const MIN_WAITING = 20;
/** An entry takes about 150 bytes. */
const MAX_OWNERS = 50_000;

/** The address blocks that own a call, and the part of each, 0 to 1. */
export type Parts = ReadonlyMap<string, number>;

/** The parts of blocks that share a call equally. */
export function equalParts(blocks: readonly string[]): Parts {
  const different = new Set(blocks);
  return new Map([...different].map((block) => [block, 1 / different.size]));
}

export interface Owner {
  readonly use: Use;
  readonly parts: Parts;
  /** When it aborts, the owner's waiting calls are dropped. */
  readonly signal?: AbortSignal | undefined;
}

/** The calls that an owner has taken and not made yet. */
interface Tab extends Owner {
  /** Calls that count for its blocks' ranks. */
  charged: number;
  /** Calls that also had their turn. */
  unmade: number;
  /** Whether the owner's code has ended. What it has started, such as polls, may go on. */
  hasEnded: boolean;
}

/**
 * The calls of a block, or an IPv6 /32, that count against its share (`all`), and for its rank
 * among the blocks of a use.
 */
interface Taken extends Record<Use | "all", number> {
  at: MonotonicTime;
  readonly wideBlock: string | undefined;
}

const NOTHING = { all: 0, lookups: 0, collects: 0, histories: 0, streams: 0 };

interface Waiter {
  readonly rank: () => number;
  readonly signal?: AbortSignal | undefined;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export type ChainPlan = ReturnType<typeof createChainPlan>;

/**
 * Every call to the chain has an owner, who takes it before it is made. In any second, all replicas
 * together make `callsPerSecond` calls: each its equal part. A use may take what the floors of the
 * others leave; streams have only their floor, because nobody waits for their next read. Further
 * calls wait, and the next call goes to the block that has used least of its share. So a block that
 * takes little hardly waits, however many take much. If too many calls wait, the block that has
 * used most is refused; so is a block that has used its whole share.
 *
 * Node's AsyncLocalStorage passes the owner on to everything that it starts. So retries, calls to a
 * second endpoint, and what follows a signature count too: they do not wait, but later calls wait
 * for them. Calls without an owner, or after its code has ended, are the service's own: a few a
 * minute.
 */
export function createChainPlan(needs: {
  callsPerSecond: number;
  /** The number of replicas that share the plan. */
  replicas: () => number;
  /** Returns the error of a refused call. */
  refuse: (shortage: Required<Shortage>) => Error;
  metrics: BudgetMetrics;
}) {
  const tabs = new AsyncLocalStorage<Tab>();
  /** By block and IPv6 /32, and of all together. */
  const allTaken = createLruCache<string, Taken>(MAX_OWNERS);
  const waiting = Object.fromEntries(USES.map((use) => [use, new Set<Waiter>()])) as {
    readonly [use in Use]: Set<Waiter>;
  };
  /** What is left of each floor, and of the plan. Negative after calls that did not wait. */
  const floors: Record<Use, number> = { ...FLOORS };
  let left = 0;
  let refilledAt = LONG_AGO;
  let timer: NodeJS.Timeout | undefined;
  const rate = () => needs.callsPerSecond / needs.replicas();
  const sum = (of: (use: Use) => number) => USES.reduce((total, use) => total + of(use), 0);
  needs.metrics.watch("chain_calls", () => Math.min(1, takenBy("all").all / FADE_SECONDS / rate()));

  function refill(): void {
    const perSecond = rate();
    const capacityOf = (use: Use) => Math.max(1, FLOORS[use] * BURST * perSecond);
    const capacity = sum(capacityOf);
    // With a full bucket, a second then gives no more than the plan.
    const refilled = Math.max(perSecond - capacity, perSecond / 2) * (msSince(refilledAt) / 1_000);
    for (const use of USES)
      floors[use] = Math.min(capacityOf(use), floors[use] + FLOORS[use] * refilled);
    left = Math.min(capacity, left + refilled);
    refilledAt = monotonicNow();
  }

  function mayCall(use: Use): boolean {
    if (floors[use] >= 1 || use === "streams") return floors[use] >= 1;
    return left - sum((each) => (each === use ? 0 : Math.max(0, floors[each]))) >= 1;
  }

  /** Takes a call that may be made. What other uses leave does not count against the floor. */
  function takeOne(use: Use): void {
    left--;
    if (floors[use] >= 1) floors[use]--;
  }

  /** Takes calls that cannot wait. Gives a negative number back. */
  function takeAtOnce(use: Use, calls: number): void {
    left -= calls;
    floors[use] -= calls;
  }

  /** Counts a call that is made now. */
  function make(tab: Tab): void {
    const isTaken = tab.unmade > 0;
    const isCharged = tab.charged > 0;
    if (isTaken) tab.unmade--;
    else takeAtOnce(tab.use, 1);
    if (isCharged) tab.charged--;
    charge(tab, isTaken ? 0 : 1, isCharged ? 0 : 1);
  }

  /** What is left of what a block or IPv6 /32 has taken. */
  function takenBy(name: string): Taken {
    let taken = allTaken.get(name);
    if (!taken) {
      taken = { ...NOTHING, at: monotonicNow(), wideBlock: toWideBlock(name) };
      allTaken.set(name, taken);
    }
    const left = Math.exp(-msSince(taken.at) / 1_000 / FADE_SECONDS);
    taken.all *= left;
    for (const use of USES) taken[use] *= left;
    taken.at = monotonicNow();
    return taken;
  }

  /**
   * Adds calls to those that count against the shares of an owner's blocks, and for their ranks.
   */
  function charge({ use, parts }: Owner, forShare: number, forRank: number): void {
    if (forShare === 0 && forRank === 0) return;
    takenBy("all").all += forShare;
    for (const [block, part] of parts) {
      const taken = takenBy(block);
      const { wideBlock } = taken;
      for (const each of wideBlock ? [taken, takenBy(wideBlock)] : [taken]) {
        each.all += part * forShare;
        each[use] += part * forRank;
      }
    }
  }

  /** As many calls, and then as many as fade in a minute, are the share of a block in a minute. */
  function mostOf(block: string): number {
    const share = block === TRUSTED_BLOCK ? TRUSTED_SHARE : BLOCK_SHARE;
    return (share * rate() * SHARE_SECONDS) / (1 + SHARE_SECONDS / FADE_SECONDS);
  }

  /**
   * What a block has taken for a use, or in all, as a part of what it may take; its IPv6 /32's part
   * if that is larger. Of several blocks, the least. The blocks with the least have the next turn.
   */
  function partTaken(blocks: Iterable<string>, of: Use | "all"): number {
    let least = Infinity;
    for (const block of blocks) {
      const { wideBlock, [of]: own } = takenBy(block);
      const most = wideBlock ? Math.max(own, takenBy(wideBlock)[of]) : own;
      least = Math.min(least, most / mostOf(block));
    }
    return least;
  }

  function refusal(scope: BudgetScope, waitSeconds: number): Error {
    needs.metrics.refused("chain_calls", scope, 1);
    return needs.refuse({ scope, retryAfterSeconds: toRetryAfterSeconds(1_000 * waitSeconds) });
  }

  /** Returns the error for a call whose blocks have all used their shares. */
  function refusalOf(blocks: Iterable<string>): Error | undefined {
    const used = partTaken(blocks, "all");
    return used < 1 ? undefined : refusal("CALLER", FADE_SECONDS * Math.log(used));
  }

  const maxWaiting = () => Math.max(MIN_WAITING, Math.ceil(MAX_WAIT_SECONDS * rate()));
  /** After this time, the calls that wait now have been made. */
  const refusalOfMany = (use: Use) => refusal("SERVICE", maxWaiting() / rate() / FLOORS[use]);

  function inOrder(use: Use): Waiter[] {
    const ranked = Array.from(waiting[use], (waiter) => ({ waiter, rank: waiter.rank() }));
    return ranked.sort((a, b) => a.rank - b.rank).map(({ waiter }) => waiter);
  }

  /** Takes the next call of a use; undefined if it may be made at once. */
  function takeTurn(use: Use, rank: () => number, signal?: AbortSignal): Promise<void> | undefined {
    refill();
    if (waiting[use].size === 0 && mayCall(use)) {
      takeOne(use);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      waiting[use].add({ rank, signal, resolve, reject });
      if (waiting[use].size > maxWaiting()) {
        const last = inOrder(use).at(-1)!;
        waiting[use].delete(last);
        last.reject(refusalOfMany(use));
      }
      timer ??= setTimeout(giveTurns, 1_000 / rate());
    });
  }

  function giveTurns(): void {
    refill();
    for (const use of USES) {
      const next = waiting[use].size > 0 && mayCall(use) ? inOrder(use) : [];
      for (const waiter of next) {
        if (!waiter.signal?.aborted && !mayCall(use)) break;
        waiting[use].delete(waiter);
        if (waiter.signal?.aborted) waiter.reject(waiter.signal.reason as Error);
        else {
          takeOne(use);
          waiter.resolve();
        }
      }
    }
    const isWaiting = USES.some((use) => waiting[use].size > 0);
    timer = isWaiting ? setTimeout(giveTurns, 1_000 / rate()) : undefined;
  }

  async function runOn<T>(tab: Tab, run: () => T | Promise<T>): Promise<T> {
    charge(tab, tab.unmade, tab.charged);
    try {
      return await tabs.run(tab, run);
    } finally {
      takeAtOnce(tab.use, -tab.unmade);
      charge(tab, -tab.unmade, -tab.charged);
      tab.hasEnded = true;
    }
  }

  refill();
  return {
    /**
     * Runs code whose calls belong to `owner`. `calls` count for its blocks from now on; what is
     * not made is given back.
     */
    own: <T>(owner: Owner, calls: number, run: () => T | Promise<T>): Promise<T> =>
      runOn({ ...owner, charged: calls, unmade: 0, hasEnded: false }, run),

    /** The owner of the running code's calls. */
    owner: (): Owner | undefined => tabs.getStore(),

    /**
     * Takes the owner's next call, once it may be made; undefined if that is now. Rejects with the
     * error of `refuse`, or the signal's reason.
     */
    turn(): Promise<void> | undefined {
      const tab = tabs.getStore();
      // A batch has its turn already.
      if (!tab || tab.hasEnded || tab.unmade > 0) return undefined;
      const refused = refusalOf(tab.parts.keys());
      if (refused) return Promise.reject(refused);
      const giveUp = (error: unknown) => {
        charge(tab, -1, 0);
        throw error;
      };
      const taken = () => {
        tab.unmade++;
      };
      charge(tab, 1, 0);
      const turn = takeTurn(tab.use, () => partTaken(tab.parts.keys(), tab.use), tab.signal);
      if (turn) return turn.then(taken, giveUp);
      taken();
      return undefined;
    },

    /** Counts a call that is being made. */
    count(): void {
      const tab = tabs.getStore();
      if (!tab || tab.hasEnded) left--;
      else make(tab);
    },

    /** For batches of a use, which choose their keys once they have a turn. */
    batchesOf: (use: Use) => ({
      /** `rank`: the least rank of the batch's blocks. */
      turn: (rank: () => number) => takeTurn(use, rank),
      /** Takes up to `most` further calls that may be made now. Returns how many. */
      takeMore(most: number): number {
        let taken = 0;
        while (taken < most && mayCall(use)) {
          takeOne(use);
          taken++;
        }
        return taken;
      },
      /** Makes the taken calls, for the owners of the chosen keys. Gives back what is not made. */
      run<T>(parts: Parts, run: () => T | Promise<T>, calls = 1): Promise<T> {
        return runOn({ use, parts, charged: calls, unmade: calls, hasEnded: false }, run);
      },
      /** The least rank of these blocks. */
      rankOf: (blocks: Iterable<string>) => partTaken(blocks, use),
      /** How much a call adds to a block's rank. */
      costOf: (block: string) => 1 / mostOf(block),
      refusalOf,
      /** The error for a key when the keys of more than `maxWaiting` calls wait. */
      refusalOfMany: () => refusalOfMany(use),
      maxWaiting,
    }),
  };
}

export type Batches = ReturnType<ChainPlan["batchesOf"]>;
