import { AsyncLocalStorage } from "node:async_hooks";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import { createLruCache } from "../store/lru-cache.ts";
import { LONG_AGO, monotonicNow, msSince, type MonotonicTime } from "../time/monotonic.ts";
import { blocksOf, createBatcher, type Policy } from "../upstream/batcher.ts";
import type { BudgetMetrics } from "./budget-metrics.ts";
import { toWideBlock, TRUSTED_BLOCK, type BudgetScope, type Shortage } from "./budget.ts";
import { inFairOrder } from "./fair-order.ts";
import { sleep } from "../time/sleep.ts";

/** Each use's floor: the fraction of the plan that no other use can take. */
const FLOORS = { lookups: 3 / 8, collects: 3 / 8, histories: 7 / 32, streams: 1 / 32 } as const;
export type Use = keyof typeof FLOORS;
const USES = Object.keys(FLOORS) as Use[];
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
/** Each takes 370 to 630 bytes. */
const MAX_BLOCKS = 50_000;
/** The name under which the calls of all blocks count. */
const EVERYBODY = "";

/** The address blocks that own a call, and the part of each, 0 to 1. */
export type Parts = ReadonlyMap<string, number>;

/** The parts of blocks that share a call equally. */
export const equalParts = (blocks: readonly string[]): Parts =>
  partsOf(
    [new Set(blocks)],
    (each) => each,
    () => 1,
  );

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
    for (const block of blocks)
      parts.set(block, (parts.get(block) ?? 0) + sizeOf(item) / total / blocks.length);
  }
  return parts;
}

/** How many calls of each use, and of all, a block had at a time. They fade from then on. */
type Counts = Partial<Record<Use | "all", { readonly calls: number; readonly at: MonotonicTime }>>;

export interface Owner {
  readonly use: Use;
  readonly parts: Parts;
  /** When it aborts, the owner's waiting calls are dropped. */
  readonly signal?: AbortSignal | undefined;
}

/** An owner whose code runs. */
interface Tab extends Owner {
  /** How many of its next calls have been counted for the ranks of its blocks. */
  rankedCalls: number;
  /** Whether the code waited for its turn before it chose its owner. */
  readonly isBatch?: boolean;
  /** Calls that had their turn, and are not made yet. */
  turns: number;
  /** Whether the code has ended. What it has started, such as polls, may go on. */
  hasEnded?: boolean;
}

export type ChainCallPlan = ReturnType<typeof createChainCallPlan>;

/**
 * Every call to the chain has an owner, who takes it before it is made. In any second, all replicas
 * together make `callsPerSecond` calls: each its equal part. A part below 8 is exceeded: each of the
 * four uses may make one call at once, so a second has up to 4 calls and half the part. A use may
 * take what the floors of the others leave; streams have only their floor, because nobody waits for
 * their next read. Further calls wait, and the next call goes to the block that has used least of
 * its share. So a block that takes little hardly waits, however many take much. If too many calls
 * wait, the block that has used most is refused; so is a block that has used its whole share.
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
  /** The calls that still count, by block or /32. */
  const counts = createLruCache<string, Counts>(MAX_BLOCKS);
  /** What is left of each floor, and of the plan. Negative after calls that did not wait. */
  const floors: Record<Use, number> = { ...FLOORS };
  let plan = 0;
  let refilledAt = LONG_AGO;
  /** The newest turn of each use that somebody waits for, or has had. */
  const lastTurns: Partial<Record<Use, Promise<void>>> = {};
  /** How many calls owners' code has asked for: the name of the next one. */
  let askedCalls = 0;
  const rate = () => needs.callsPerSecond / needs.replicas();
  const sum = (of: (use: Use) => number) => USES.reduce((total, use) => total + of(use), 0);
  needs.metrics.watch("chain_calls", () =>
    Math.max(0, 1 - callsOf("all") / FADE_SECONDS / sustainedRate()),
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
    refill();
    if (floors[use] >= 1 || use === "streams") return floors[use] >= 1;
    return plan - sum((each) => (each === use ? 0 : Math.max(0, floors[each]))) >= 1;
  }

  /** Takes a use's next call, once it may be made. Batches and single calls take turns. */
  const takeTurn = (use: Use): Promise<void> =>
    (lastTurns[use] = Promise.resolve(lastTurns[use]).then(async () => {
      while (!mayCall(use)) await sleep(1_000 / rate());
      plan--;
      // What other uses leave does not count against the floor.
      if (floors[use] >= 1) floors[use]--;
    }));

  /** Returns the calls of a block that still count, with those that are added now. */
  function callsOf(of: keyof Counts, added = 0, block = EVERYBODY): number {
    const ofBlock = counts.get(block) ?? {};
    const { calls, at } = ofBlock[of] ?? { calls: 0, at: LONG_AGO };
    const all = calls * Math.exp(-msSince(at) / 1_000 / FADE_SECONDS) + added;
    if (added > 0) {
      ofBlock[of] = { calls: all, at: monotonicNow() };
      counts.set(block, ofBlock);
    }
    return all;
  }

  /** Adds calls to what blocks use. */
  function charge(of: keyof Counts, parts: Parts, calls: number): void {
    for (const [block, part] of parts)
      for (const each of widthsOf(block)) callsOf(of, part * calls, each);
  }

  /** As many calls, and then as many as fade in a minute, are the share of a block in a minute. */
  function mostOf(block: string): number {
    const share = block === TRUSTED_BLOCK ? TRUSTED_SHARE : BLOCK_SHARE;
    return (share * rate() * SHARE_SECONDS) / (1 + SHARE_SECONDS / FADE_SECONDS);
  }

  /** What a block uses, as a part of what it may use; its IPv6 /32's part if that is larger. */
  const partUsed = (block: string, of: keyof Counts): number =>
    Math.max(...widthsOf(block).map((each) => callsOf(of, 0, each))) / mostOf(block);

  function refusal(scope: BudgetScope, waitSeconds: number): Error {
    needs.metrics.refused("chain_calls", scope);
    return needs.refuse({ scope, retryAfterSeconds: toRetryAfterSeconds(1_000 * waitSeconds) });
  }

  /** Returns the error for a call whose blocks have all used their shares. */
  function refusalOf(blocks: readonly string[]): Error | undefined {
    const least = Math.min(...blocks.map((block) => partUsed(block, "all")));
    if (least < 1 || blocks.length === 0) return undefined;
    return refusal("CALLER", FADE_SECONDS * Math.log(least));
  }

  const maxWaiting = () => Math.max(MIN_WAITING, Math.ceil(MAX_WAIT_SECONDS * rate()));

  /** For batches of a use, which choose their keys once they have a turn. */
  function batchesOf(use: Use) {
    const turn = () => takeTurn(use);
    /** Sorts items so that those of the blocks that use least of their shares come first. */
    const inOrder = <T>(
      items: readonly T[],
      blocksIn: (item: T) => Iterable<string>,
      partOf: (item: T) => number,
    ): T[] =>
      inFairOrder(
        items,
        blocksIn,
        (block) => partUsed(block, use),
        (item, block) => partOf(item) / mostOf(block),
      );
    return {
      turn,
      inOrder,
      /** Makes the call, for the owners of the chosen keys. */
      run: <T>(parts: Parts, run: () => T | Promise<T>): Promise<T> =>
        runAs({ use, parts, rankedCalls: 0, isBatch: true, turns: 1 }, run),
      /** `partOf`: the part of a call that a key takes. `perCall`: the size of a call's keys. */
      policyOf: <Key>(partOf: (key: Key) => number, perCall: number): Policy<Key> => ({
        turn,
        inOrder: (waiting) => inOrder(waiting, blocksOf, ({ key }) => partOf(key)),
        refusalOf: (entry) => refusalOf(blocksOf(entry)),
        maxWaiting: () => perCall * maxWaiting(),
        // After this time, the calls that wait now have been made.
        refuse: () => refusal("SERVICE", maxWaiting() / rate() / FLOORS[use]),
      }),
    };
  }

  /** The calls of owners' code, which wait one by one. */
  const createQueue = (use: Use) =>
    createBatcher<string, true>({
      ask(_call, answer) {
        answer(0, true);
        return Promise.resolve();
      },
      idOf: (call) => call,
      maxKeys: 1,
      policy: batchesOf(use).policyOf(() => 1, 1),
    });
  const queues = {
    lookups: createQueue("lookups"),
    collects: createQueue("collects"),
    histories: createQueue("histories"),
    streams: createQueue("streams"),
  };

  async function runAs<T>(tab: Tab, run: () => T | Promise<T>): Promise<T> {
    try {
      return await tabs.run(tab, run);
    } finally {
      tab.hasEnded = true;
    }
  }

  refill();
  return {
    /**
     * Runs code whose calls belong to `owner`. `usualCalls`: how many a collect makes. They count
     * for the ranks of its blocks from the start, instead of when they are made. Otherwise
     * strangers' blocks that begin their collects one after the other would all come before a
     * collect that goes on.
     */
    own<T>({ use, parts, signal }: Owner, run: () => T | Promise<T>, usualCalls = 0): Promise<T> {
      charge(use, parts, usualCalls);
      return runAs({ use, parts, signal, rankedCalls: usualCalls, turns: 0 }, run);
    },

    /** For the operator: what each use takes of this replica's part of the plan. */
    describe: () => ({
      perSecond: rate(),
      uses: Object.fromEntries(
        USES.map((use) => [
          use,
          { perSecond: callsOf(use) / FADE_SECONDS, waiting: queues[use].waiting() },
        ]),
      ),
    }),

    /** The owner of the running code's calls. */
    owner: (): Owner | undefined => tabs.getStore(),

    /**
     * Takes the owner's next call, once it may be made. Rejects with the error of `refuse`, or the
     * signal's reason.
     */
    async turn(): Promise<void> {
      const tab = tabs.getStore();
      if (!tab || tab.hasEnded || tab.isBatch) return;
      const { use, parts, signal } = tab;
      const blocks = [...parts.keys()];
      const error = refusalOf(blocks);
      if (error) throw error;
      const [answer] = await queues[use].load([String(askedCalls++)], { blocks, signal });
      if (answer instanceof Error) throw answer;
      tab.turns++;
    },

    /** Counts a call that is being made. */
    count(): void {
      const tab = tabs.getStore();
      if (!tab || tab.hasEnded) {
        plan--;
        return;
      }
      if (tab.turns > 0) tab.turns--;
      else {
        plan--;
        floors[tab.use]--;
      }
      const { use, parts } = tab;
      callsOf("all", 1);
      callsOf(use, 1);
      charge("all", parts, 1);
      if (tab.rankedCalls > 0) tab.rankedCalls--;
      else charge(use, parts, 1);
    },

    batchesOf,
  };
}

export type Batches = ReturnType<ChainCallPlan["batchesOf"]>;

/** An address block, and the IPv6 /32 that contains it. */
const widthsOf = (block: string): string[] => [block, toWideBlock(block) ?? []].flat();
