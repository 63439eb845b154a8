import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { addMs, monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { CollectError } from "../errors/collect-error.ts";
import { coinAddressesOf } from "../launchpad/coin-addresses.ts";
import { untilAborted } from "../../upstream/deadline.ts";
import { NoRoomError } from "../errors/no-room-error.ts";
import type { Floors } from "../balances/floors.ts";
import { hasNamedCoin, type ReadUnits, type ReadUnitsOf, type Unit } from "../units/units.ts";
import type { Claim, Claims, StoredTransaction } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { Confirmation } from "./send-and-confirm.ts";
import type { SentTransaction, SettleTransaction, TransactionEnd } from "./settle.ts";
import type { Prepare, Prepared } from "./prepare-and-sign.ts";
import { accountsOf, hasCoins, nextTurn, type Request, type Turn, type Waiter } from "./turns.ts";

/** How a unit's transaction, or the attempt to sign one, ended. */
export type End = TransactionEnd | Exclude<Prepared, { kind: "signed" }>;

/** What a request receives that waited for a unit. */
export interface Result {
  readonly end: End;
  /** Whether the request had the turn. */
  readonly isMember: boolean;
}

/** A unit's transaction, from the first try to take its claim until its outcome is known. */
export interface Flight {
  /** The unit's. */
  readonly key: string;
  readonly startedAt: MonotonicTime;
  /** Of the transaction that may be in flight. */
  signature?: string;
  /** Whether its amounts are being read. */
  hasLanded?: boolean;
  /** Whether it signs for requests without coins. */
  readonly isPlain: boolean;
  readonly end: Promise<End>;
}

/** The requests that wait for a unit, and the unit's flight. */
interface Queue {
  readonly key: string;
  /** Each request, and what resolves with the end of a flight that serves it. */
  readonly waiters: Map<Waiter, PromiseWithResolvers<Result>>;
  /** See {@link nextTurn}. */
  readonly counts: Map<string, number>;
  flight: Flight | undefined;
}

/** The wait between two tries to take a claim that another replica has. */
const CLAIM_POLL_MS = 100;

export type Flights = ReturnType<typeof createFlights>;

/**
 * Runs the transactions of units: one at a time for each unit, in this process always, across all
 * replicas while Redis is up. A flight holds one claim, and waits for no other. No transaction is
 * lost or doubled: it is signed once, and the same bytes are resent until it lands or expires. A
 * flight has its own deadline and continues after all callers have left.
 *
 * Requests take turns: first all that name no coin of the account, in one transaction; then one at
 * a time, by address blocks and the /32s of IPv6. So no request's coins can fail another's collect,
 * or keep the vaults waiting for longer than a turn. A request that waited is also served by
 * another's transaction that landed after its read.
 */
export function createFlights(needs: {
  readUnits: ReadUnitsOf;
  prepare: Prepare;
  claims: Claims;
  floors: Floors;
  confirm: Confirmation["confirm"];
  settleTransaction: SettleTransaction;
  metrics: CollectMetrics;
  /** Runs a flight, whose calls to the chain belong to the blocks that have the turn. */
  ownCalls: ChainCallPlan["own"];
  /** Limits how long a flight may take until it signs. */
  collectTimeoutMs: number;
}) {
  const { readUnits, prepare, claims, floors, confirm, settleTransaction } = needs;
  const { metrics, ownCalls, collectTimeoutMs } = needs;
  const queues = new Map<string, Queue>();

  const running = () => [...queues.values()].flatMap(({ flight }) => flight ?? []);

  function queueOf(key: string): Queue {
    const queue = queues.get(key) ?? {
      ...{ key, waiters: new Map(), counts: new Map(), flight: undefined },
    };
    queues.set(key, queue);
    return queue;
  }

  /** Begins the next turn, if requests wait. `isLater`: whether a flight came before. */
  function takeTurn(queue: Queue, isLater: boolean): void {
    const turn = nextTurn([...queue.waiters.keys()], queue.counts);
    if (turn) launch(queue, turn, turn.blocks, (flight) => fly(flight, turn, isLater));
    else queues.delete(queue.key);
  }

  /** Starts a unit's flight, which runs for `blocks`. When it is over, the next turn begins. */
  function launch(
    queue: Queue,
    turn: Turn | undefined,
    blocks: readonly string[],
    run: (flight: Flight) => Promise<End>,
  ): Flight {
    const { promise: end, resolve: finish } = Promise.withResolvers<End>();
    const isPlain = turn !== undefined && !hasCoins(turn.leader);
    const flight: Flight = { key: queue.key, startedAt: monotonicNow(), isPlain, end };
    queue.flight = flight;
    void ownCalls({ use: "collects", parts: equalParts(blocks) }, () => run(flight))
      .catch((error: unknown): End => ({ kind: "failed", error, isFollowed: false }))
      .then((result) => {
        queue.flight = undefined;
        const error = "error" in result ? result.error : undefined;
        if (result.kind === "refused") metrics.ended("refused");
        // A request that has no calls left is counted by the collector.
        else if (error !== undefined && !(error instanceof NoRoomError))
          metrics.ended(error instanceof CollectError ? error.code : "COLLECT_FAILED");
        finish(result);
        for (const [waiter, { resolve }] of queue.waiters) {
          // After `again`, the members wait for the next turn.
          const isMember = result.kind !== "again" && turn?.members.includes(waiter) === true;
          if (!isMember && !isServed(waiter, result)) continue;
          queue.waiters.delete(waiter);
          resolve({ end: result, isMember });
        }
        takeTurn(queue, true);
      });
    return flight;
  }

  /** Follows a transaction that another replica has stored. */
  function follow(
    key: string,
    { account, caller }: Request,
    claim: Pick<Claim, "settle">,
    transaction: StoredTransaction,
  ): Flight {
    const queue = queueOf(key);
    return (
      queue.flight ??
      launch(queue, undefined, [caller.addressBlock], (flight) =>
        conclude(flight, { key, account, claim, transaction }),
      )
    );
  }

  /**
   * Claims the unit, and signs, sends and confirms its transaction. `isStale`: whether the leader's
   * read is too old.
   */
  async function fly(flight: Flight, turn: Turn, isStale: boolean): Promise<End> {
    const endsAt = addMs(monotonicNow(), collectTimeoutMs);
    const { unit, read, request } = turn.leader;
    const { key, sweeps } = unit;
    const { account, caller } = request;
    const claim = await takeClaim(key, endsAt);
    const [sweep] = sweeps;
    const changedAddress = unit.kind === "own" || !sweep ? account.address : sweep.coin.curve;
    floors.require(changedAddress, claim.landedSlot);
    const sent = { key, account, claim, turn };
    const { openTransaction } = claim;
    if (openTransaction) return conclude(flight, { ...sent, transaction: openTransaction });

    async function readAndPrepare(): Promise<Prepared> {
      const isFresh = !isStale && claim.landedSlot <= read.fees.slot;
      const coins = [...new Set(sweeps.map(({ coin }) => coin))];
      const { units, fees, error } = isFresh
        ? read
        : await readUnits({ account, coins }, caller.visitorBlock);
      const currentUnit = units.find((each) => each.key === key);
      if (!currentUnit) return { kind: "nothing", error };
      // A lone collect does not wait for others. After a failure, each account goes alone.
      const mayShare = !isStale && sweeps.length === 0 && queues.size > 1;
      const ready = { unit: currentUnit, claim, slot: fees.slot, turn, endsAt };
      return prepare(ready, mayShare);
    }
    const preparation = await readAndPrepare().catch(
      (error: unknown) => ({ kind: "failed", error, isFollowed: false }) as const,
    );
    if (preparation.kind !== "signed") {
      claim.settle();
      return preparation;
    }
    const { signed } = preparation;
    const { transaction } = signed;
    if (unit.kind === "distribution")
      await Promise.all(
        accountsOf(turn, account).map(({ address }) => claims.keepPending(address, transaction)),
      );
    return conclude(flight, { ...sent, transaction, signed });
  }

  async function takeClaim(key: string, endsAt: MonotonicTime): Promise<Claim> {
    const token = randomUUID();
    let claim = await claims.take(key, token);
    while ("holder" in claim) {
      if (monotonicNow() > endsAt) throw new CollectError({ kind: "lease-not-acquired" });
      await sleep(CLAIM_POLL_MS);
      claim = await claims.take(key, token, claim.holder);
    }
    return claim;
  }

  /** Sends its own transaction, or follows another's, until the outcome, and settles it. */
  async function conclude(flight: Flight, inFlight: SentTransaction): Promise<TransactionEnd> {
    const { transaction, signed } = inFlight;
    flight.signature = transaction.signature;
    const outcome = await confirm(transaction, !signed);
    flight.hasLanded = outcome.kind === "landed" && outcome.err === null;
    return settleTransaction(inFlight, outcome);
  }

  return {
    /**
     * Returns the flight of a unit whose transaction is open. With `mayJoin`, also one whose
     * transaction is to be signed for requests without coins. Follows what another replica has
     * stored; `unknown` if Redis does not say.
     */
    async findOpen(key: string, asker: Request, mayJoin: boolean) {
      const running = queues.get(key)?.flight;
      if ((mayJoin && running?.isPlain) || running?.signature !== undefined) return running;
      const claim = await claims.look(key);
      const { openTransaction, isGuess } = claim;
      if (openTransaction) return follow(key, asker, claim, openTransaction);
      return isGuess ? "unknown" : undefined;
    },

    /** Follows a distribution that a replica signed for the account before it died. */
    followPending(transaction: StoredTransaction, asker: Request): Flight | undefined {
      const [mint] = transaction.sweptMints ?? [];
      if (mint === undefined) return undefined;
      const { address } = coinAddressesOf(mint).sharingConfig;
      return follow(address, asker, { settle: () => undefined }, transaction);
    },

    /** Waits for a turn of the unit. Rejects with the signal's reason. */
    async run(unit: Unit, read: ReadUnits, request: Request, signal: AbortSignal): Promise<Result> {
      const queue = queueOf(unit.key);
      const waiter = { request, unit, read };
      const result = Promise.withResolvers<Result>();
      queue.waiters.set(waiter, result);
      if (!queue.flight) takeTurn(queue, false);
      try {
        return await untilAborted(result.promise, signal);
      } finally {
        queue.waiters.delete(waiter);
      }
    },

    /** A flight of these units whose transaction may be in flight, if any. */
    openOf: (keys: readonly string[]): Flight | undefined =>
      keys.map((key) => queues.get(key)?.flight).find((flight) => flight?.signature !== undefined),

    /** Resolves when no transaction is in flight, and none is being prepared. */
    async settled(): Promise<void> {
      while (running().length > 0) await Promise.all(running().map(({ end }) => end));
    },

    /** For the operator: what is being collected now. Lists `most` units at most. */
    describe: (most: number) => ({
      openCount: queues.size,
      open: [...queues.values()].slice(0, most).flatMap(({ key, flight, waiters }) => {
        if (!flight) return [];
        const { signature, startedAt } = flight;
        return {
          unit: key,
          state: signature === undefined ? "preparing" : "sent",
          signature,
          ageSeconds: Math.round(msSince(startedAt) / 1_000),
          waiters: waiters.size,
        };
      }),
    }),

    openSignatures: () => [...new Set(running().flatMap(({ signature }) => signature ?? []))],
  };
}

/** Whether another turn's transaction serves a waiting request. */
function isServed(waiter: Waiter, end: End): boolean {
  const { request, read } = waiter;
  if (end.kind !== "landed" || end.slot <= read.newestSlot) return false;
  return !hasCoins(waiter) || hasNamedCoin(request.coins, end.moved);
}
