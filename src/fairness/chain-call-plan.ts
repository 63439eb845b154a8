import { AsyncLocalStorage } from "node:async_hooks";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import { reasonOf } from "../observability/thrown.ts";
import { createLruCache } from "../store/lru-cache.ts";
import { LONG_AGO, monotonicNow, msSince, type MonotonicTime } from "../time/monotonic.ts";
import type { BudgetMetrics } from "./budget-metrics.ts";
import { toWideBlock, TRUSTED_BLOCK, type BudgetScope, type Shortage } from "./budget.ts";
import { inFairOrder } from "./fair-order.ts";

const USES = ["lookups", "collects", "histories", "streams"] as const;
export type Use = (typeof USES)[number];
/** Each use's floor: the fraction of the plan that no other use can take. */
const FLOORS: Readonly<Record<Use, number>> = {
  lookups: 3 / 8,
  collects: 3 / 8,
  histories: 7 / 32,
  streams: 1 / 32,
};
/** The most of the plan in any minute, for an IPv4 /24, an IPv6 /48, or an IPv6 /32. */
const BLOCK_SHARE = 1 / 4;
/** For all trusted callers together. */
const TRUSTED_SHARE = 1 / 2;
const SHARE_SECONDS = 60;
/** The fraction of a second's calls that may be made at once. */
const BURST = 1 / 4;
/** How long a call counts: what a block has used fades by a factor of e in this time. */
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

/** The part of each block in a call: each item counts by its size, each of its blocks equally. */
export function partsOf<T>(
  items: readonly T[],
  blocksOf: (item: T) => Iterable<string>,
  sizeOf: (item: T) => number,
): Parts {
  const parts = new Map<string, number>();
  const total = items.reduce((sum, item) => sum + sizeOf(item), 0);
  for (const item of items) {
    const blocks = [...blocksOf(item)];
    for (const block of blocks) {
      const part = sizeOf(item) / total / blocks.length;
      parts.set(block, (parts.get(block) ?? 0) + part);
    }
  }
  return parts;
}

export interface Owner {
  readonly use: Use;
  readonly parts: Parts;
  /** When it aborts, the owner's waiting calls are dropped. */
  readonly signal?: AbortSignal | undefined;
}

/** An owner whose code runs. */
interface Tab extends Owner {
  /** Whether the code waited for its turn before it chose its owner. */
  readonly isBatch: boolean;
  /** Calls that had their turn, and are not made yet. */
  turns: number;
  /** Whether the code has ended. What it has started, such as polls, may go on. */
  hasEnded: boolean;
}

/** What a block, or an IPv6 /32, uses of the plan. */
interface Usage {
  /** The calls that still count: all against the share, those of a use for the rank. */
  readonly calls: Record<Use | "all", number>;
  at: MonotonicTime;
  /** The calls that its running collects will have made in all. */
  expectedCalls: number;
  readonly wideBlock: string | undefined;
}

const NOTHING = { all: 0, lookups: 0, collects: 0, histories: 0, streams: 0 };

interface Waiter {
  readonly blocks: () => Iterable<string>;
  readonly signal?: AbortSignal | undefined;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export type ChainCallPlan = ReturnType<typeof createChainCallPlan>;

/**
 * Every call to the chain has an owner, who takes it before it is made. In any second, all replicas
 * together make `callsPerSecond` calls: each its equal part. A part below 8 is exceeded: each of the
 * four uses may make one call at once, so a second has up to 4 calls and half the part. A use may take what the floors of the
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
export function createChainCallPlan(needs: {
  callsPerSecond: number;
  /** The number of replicas that share the plan. */
  replicas: () => number;
  /** Returns the error of a refused call. */
  refuse: (shortage: Required<Shortage>) => Error;
  metrics: BudgetMetrics;
}) {
  const tabs = new AsyncLocalStorage<Tab>();
  /** By block and IPv6 /32, and of all together. */
  const usages = createLruCache<string, Usage>(MAX_OWNERS);
  const waiting: Readonly<Record<Use, Set<Waiter>>> = {
    lookups: new Set(),
    collects: new Set(),
    histories: new Set(),
    streams: new Set(),
  };
  /** What is left of each floor, and of the plan. Negative after calls that did not wait. */
  const floors: Record<Use, number> = { ...FLOORS };
  let plan = 0;
  let refilledAt = LONG_AGO;
  let timer: NodeJS.Timeout | undefined;
  const rate = () => needs.callsPerSecond / needs.replicas();
  const sum = (of: (use: Use) => number) => USES.reduce((total, use) => total + of(use), 0);
  needs.metrics.watch("chain_calls", () =>
    Math.max(0, 1 - usageOf("all").calls.all / FADE_SECONDS / sustainedRate()),
  );

  const capacityOf = (use: Use) => Math.max(1, FLOORS[use] * BURST * rate());
  /** The calls that may be made each second for long. With a full bucket, none gives more. */
  const sustainedRate = () => Math.max(rate() - sum(capacityOf), rate() / 2);

  function refill(): void {
    const calls = sustainedRate() * (msSince(refilledAt) / 1_000);
    for (const use of USES)
      floors[use] = Math.min(capacityOf(use), floors[use] + FLOORS[use] * calls);
    plan = Math.min(sum(capacityOf), plan + calls);
    refilledAt = monotonicNow();
  }

  function mayCall(use: Use): boolean {
    if (floors[use] >= 1 || use === "streams") return floors[use] >= 1;
    return plan - sum((each) => (each === use ? 0 : Math.max(0, floors[each]))) >= 1;
  }

  /** Takes a call that may be made. What other uses leave does not count against the floor. */
  function takeOne(use: Use): void {
    plan--;
    if (floors[use] >= 1) floors[use]--;
  }

  /** Takes calls that cannot wait. Gives a negative number back. */
  function takeAtOnce(use: Use, calls: number): void {
    plan -= calls;
    floors[use] -= calls;
  }

  function usageOf(name: string): Usage {
    let usage = usages.get(name);
    if (!usage) {
      usage = {
        calls: { ...NOTHING },
        at: LONG_AGO,
        expectedCalls: 0,
        wideBlock: toWideBlock(name),
      };
      usages.set(name, usage);
    }
    const fading = Math.exp(-msSince(usage.at) / 1_000 / FADE_SECONDS);
    usage.calls.all *= fading;
    for (const use of USES) usage.calls[use] *= fading;
    usage.at = monotonicNow();
    return usage;
  }

  /** Adds calls that are made now, and expected ones, to what an owner's blocks use. */
  function charge({ use, parts }: Owner, calls: number, expectedCalls = 0): void {
    const { calls: ofAll } = usageOf("all");
    ofAll.all += calls;
    ofAll[use] += calls;
    for (const [block, part] of parts) {
      const usage = usageOf(block);
      for (const each of usage.wideBlock ? [usage, usageOf(usage.wideBlock)] : [usage]) {
        each.calls.all += part * calls;
        each.calls[use] += part * calls;
        // The cache may have dropped a block whose collect ends.
        each.expectedCalls = Math.max(0, each.expectedCalls + part * expectedCalls);
      }
    }
  }

  /** As many calls, and then as many as fade in a minute, are the share of a block in a minute. */
  function mostOf(block: string): number {
    const share = block === TRUSTED_BLOCK ? TRUSTED_SHARE : BLOCK_SHARE;
    return (share * rate() * SHARE_SECONDS) / (1 + SHARE_SECONDS / FADE_SECONDS);
  }

  /** What a block uses, as a part of what it may use; its IPv6 /32's part if that is larger. */
  function partUsed(block: string, of: Use | "all"): number {
    const callsOf = ({ calls, expectedCalls }: Usage) =>
      of === "collects" ? Math.max(calls[of], expectedCalls) : calls[of];
    const usage = usageOf(block);
    const ofWide = usage.wideBlock ? callsOf(usageOf(usage.wideBlock)) : 0;
    return Math.max(callsOf(usage), ofWide) / mostOf(block);
  }

  function refusal(scope: BudgetScope, waitSeconds: number): Error {
    needs.metrics.refused("chain_calls", scope, 1);
    return needs.refuse({ scope, retryAfterSeconds: toRetryAfterSeconds(1_000 * waitSeconds) });
  }

  /** Returns the error for a call whose blocks have all used their shares. */
  function refusalOf(blocks: Iterable<string>): Error | undefined {
    let least = Infinity;
    for (const block of blocks) least = Math.min(least, partUsed(block, "all"));
    if (least < 1 || least === Infinity) return undefined;
    return refusal("CALLER", FADE_SECONDS * Math.log(least));
  }

  const maxWaiting = () => Math.max(MIN_WAITING, Math.ceil(MAX_WAIT_SECONDS * rate()));
  /** After this time, the calls that wait now have been made. */
  const refusalOfMany = (use: Use) => refusal("SERVICE", maxWaiting() / rate() / FLOORS[use]);

  /** Sorts items so that those of the blocks that use least of their shares come first. */
  const inOrder = <T>(
    use: Use,
    items: Iterable<T>,
    blocksOf: (item: T) => Iterable<string>,
    callsOf?: (item: T) => number,
  ): T[] =>
    inFairOrder(
      [...items],
      blocksOf,
      (block) => partUsed(block, use),
      (item, block) => (callsOf?.(item) ?? 1) / mostOf(block),
    );

  /** Takes the next call of a use; undefined if it may be made at once. */
  function takeTurn(
    use: Use,
    blocks: Waiter["blocks"],
    signal?: AbortSignal,
  ): Promise<void> | undefined {
    refill();
    if (waiting[use].size === 0 && mayCall(use)) {
      takeOne(use);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      waiting[use].add({ blocks, signal, resolve, reject });
      timer ??= setTimeout(giveTurns, 1_000 / rate());
    });
  }

  /** Why a waiting call is not made: its owner has left, or its blocks have used their shares. */
  const reasonToDrop = ({ signal, blocks }: Waiter): Error | undefined =>
    signal?.aborted ? reasonOf(signal) : refusalOf(blocks());

  function giveTurns(): void {
    refill();
    for (const use of USES) {
      const isFull = waiting[use].size > maxWaiting();
      if (!isFull && !mayCall(use)) continue;
      const next = inOrder(use, waiting[use], ({ blocks }) => blocks());
      for (const [i, waiter] of next.entries()) {
        const isLast = i >= maxWaiting();
        if (!isLast && !mayCall(use)) continue;
        waiting[use].delete(waiter);
        const reason = isLast ? refusalOfMany(use) : reasonToDrop(waiter);
        if (reason) waiter.reject(reason);
        else {
          takeOne(use);
          waiter.resolve();
        }
      }
    }
    const isWaiting = USES.some((use) => waiting[use].size > 0);
    timer = isWaiting ? setTimeout(giveTurns, 1_000 / rate()) : undefined;
  }

  async function takeTurnOf(tab: Tab): Promise<void> {
    const blocks = () => tab.parts.keys();
    const refusal = refusalOf(blocks());
    if (refusal) throw refusal;
    await takeTurn(tab.use, blocks, tab.signal);
    tab.turns++;
  }

  async function runAs<T>(owner: Owner, turns: number, run: () => T | Promise<T>): Promise<T> {
    const tab: Tab = { ...owner, isBatch: turns > 0, turns, hasEnded: false };
    try {
      return await tabs.run(tab, run);
    } finally {
      takeAtOnce(tab.use, -tab.turns);
      tab.hasEnded = true;
    }
  }

  refill();
  return {
    /**
     * Runs code whose calls belong to `owner`. `expectedCalls`: the calls of a collect, which count
     * for the ranks of its blocks while it runs, made or not. Otherwise strangers' blocks that
     * begin their collects one after the other would all come before a collect that goes on.
     */
    own<T>(owner: Owner, run: () => T | Promise<T>, expectedCalls = 0): Promise<T> {
      charge(owner, 0, expectedCalls);
      return runAs(owner, 0, run).finally(() => {
        charge(owner, 0, -expectedCalls);
      });
    },

    /** For the operator: what each use takes of this replica's part of the plan. */
    describe: () => ({
      perSecond: rate(),
      uses: Object.fromEntries(
        USES.map((use) => [
          use,
          { perSecond: usageOf("all").calls[use] / FADE_SECONDS, waiting: waiting[use].size },
        ]),
      ),
    }),

    /** The owner of the running code's calls. */
    owner: (): Owner | undefined => tabs.getStore(),

    /**
     * Takes the owner's next call, once it may be made; undefined if that is now. Rejects with the
     * error of `refuse`, or the signal's reason.
     */
    turn(): Promise<void> | undefined {
      const tab = tabs.getStore();
      return !tab || tab.hasEnded || tab.isBatch ? undefined : takeTurnOf(tab);
    },

    /** Counts a call that is being made. */
    count(): void {
      const tab = tabs.getStore();
      if (!tab || tab.hasEnded) {
        plan--;
        return;
      }
      if (tab.turns > 0) tab.turns--;
      else takeAtOnce(tab.use, 1);
      charge(tab, 1);
    },

    /** For batches of a use, which choose their keys once they have a turn. */
    batchesOf: (use: Use) => ({
      /** `blocks`: returns those whose keys wait. */
      turn: (blocks: () => Iterable<string>) => takeTurn(use, blocks),
      /** Makes the call, for the owners of the chosen keys. Gives it back if it is not made. */
      run: <T>(parts: Parts, run: () => T | Promise<T>): Promise<T> =>
        runAs({ use, parts }, 1, run),
      inOrder: <T>(
        items: Iterable<T>,
        blocksOf: (item: T) => Iterable<string>,
        callsOf: (item: T) => number,
      ) => inOrder(use, items, blocksOf, callsOf),
      refusalOf,
      /** The error for a key when the keys of more than `maxWaiting` calls wait. */
      refusalOfMany: () => refusalOfMany(use),
      maxWaiting,
    }),
  };
}

export type Batches = ReturnType<ChainCallPlan["batchesOf"]>;
