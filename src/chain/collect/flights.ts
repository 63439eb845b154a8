import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { toWideBlock } from "../../fairness/budget.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { addMs, monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { CollectError } from "../errors/collect-error.ts";
import { coinAddressesOf } from "../launchpad/coin-addresses.ts";
import type { Lamports } from "../primitives/lamports.ts";
import { untilAborted } from "../../upstream/deadline.ts";
import { NoRoomError } from "../errors/no-room-error.ts";
import type { Floors } from "../balances/floors.ts";
import { hasNamedCoin, type ReadUnits, type ReadUnitsOf, type Unit } from "../units/units.ts";
import type { Claim, Claims, StoredTransaction } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { Payers } from "./fee-budget.ts";
import { openSignature, type FlightState } from "./flight-state.ts";
import type { Confirmation } from "./send-and-confirm.ts";
import type { SentTransaction, SettleTransaction, TransactionEnd } from "./settle.ts";
import type { Prepared, ReadyUnit, Transactions } from "./prepare-and-sign.ts";
import {
  accountsOf,
  addTo,
  blockOf,
  coinsOf,
  isWorthwhile,
  nextTurn,
  type Request,
  type Turn,
  type Waiter,
} from "./turns.ts";

/** Nothing is signed. `readAt`: when the read began that showed it. */
type Nothing = Extract<Prepared, { kind: "nothing" }> & { readonly readAt: MonotonicTime };

/** How a unit's transaction, or the attempt to sign one, ended. */
export type End =
  | TransactionEnd
  | Nothing
  | Extract<Prepared, { kind: "claim-lost" }>
  /** The fee budget refuses the payers, each for its own reason. */
  | { readonly kind: "refused"; readonly error: CollectError; readonly payers: Payers }
  /** These address blocks have used their calls to the chain, or had to give way. */
  | { readonly kind: "no-room"; readonly error: NoRoomError; readonly blocks: ReadonlySet<string> };

/** What a request receives that waited for a unit. */
export interface Result {
  readonly end: End;
  /** Whether the request had the turn. */
  readonly isMember: boolean;
}

/** A unit's transaction, from the first wait for its claim until its outcome is known. */
export interface Flight {
  /** The unit's. */
  readonly key: string;
  readonly startedAt: MonotonicTime;
  state: FlightState;
  readonly end: Promise<End>;
  /** Undefined while another replica's transaction is followed before a read. */
  readonly turn: Turn | undefined;
}

/** The requests that wait for a unit, and the unit's flight. */
interface Queue {
  readonly key: string;
  /** Each request, and what resolves with the end of a flight that serves it. */
  readonly waiters: Map<Waiter, PromiseWithResolvers<Result>>;
  /** How many turns each address block, and each IPv6 /32, has had. */
  readonly counts: Map<string, number>;
  flight: Flight | undefined;
}

const PREPARING = { kind: "preparing" } as const;
/** The wait between two tries to take a claim that another replica has. */
const CLAIM_POLL_MS = 100;

export type Flights = ReturnType<typeof createFlights>;

/**
 * Runs the transactions of units: one at a time for each unit, in this process always, across all
 * replicas while Redis is up. A flight holds one claim, and waits for no other. No transaction is
 * lost or doubled: it is signed once, and the same bytes are resent until it lands or expires. A
 * flight has its own deadline and continues after all callers have left.
 *
 * Requests take turns: first all that name no coin of the account, in one transaction; then the
 * address blocks, and the /32s of IPv6, each with the coins that its requests name. So no block's
 * coins can fail another block's collect, or keep the vaults waiting for longer than a turn.
 */
export function createFlights(needs: {
  readUnits: ReadUnitsOf;
  transactions: Transactions;
  claims: Claims;
  floors: Floors;
  confirm: Confirmation["confirm"];
  settleTransaction: SettleTransaction;
  minCollectLamports: Lamports;
  metrics: CollectMetrics;
  /** Runs a flight, whose calls to the chain belong to the blocks that have the turn. */
  ownCalls: ChainCallPlan["own"];
  /** Limits how long a flight may take until it signs. */
  collectTimeoutMs: number;
}) {
  const { readUnits, transactions, claims, floors, confirm, settleTransaction } = needs;
  const { minCollectLamports, metrics, ownCalls, collectTimeoutMs } = needs;
  const queues = new Map<string, Queue>();

  function queueOf(key: string): Queue {
    const queue = queues.get(key) ?? {
      ...{ key, waiters: new Map(), counts: new Map(), flight: undefined },
    };
    queues.set(key, queue);
    return queue;
  }

  /** Begins the next turn, if requests wait. */
  function takeTurn(queue: Queue, { isLater }: { isLater: boolean }): void {
    const { key, counts, waiters } = queue;
    const turn = nextTurn([...waiters.keys()], counts, isLater);
    if (!turn) {
      queues.delete(key);
      return;
    }
    const block = blockOf(turn.leader);
    if (turn.coins.size > 0)
      for (const each of new Set([block, toWideBlock(block) ?? block]))
        counts.set(each, (counts.get(each) ?? 0) + 1);
    launch(queue, turn, [...turn.payers.keys()], (flight) => fly(flight, turn));
  }

  /** Starts a unit's flight, which runs for `blocks`. When it is over, the next turn begins. */
  function launch(
    queue: Queue,
    turn: Turn | undefined,
    blocks: readonly string[],
    run: (flight: Flight) => Promise<End>,
  ): Flight {
    const { promise: end, resolve: finish } = Promise.withResolvers<End>();
    const startedAt = monotonicNow();
    const flight: Flight = { key: queue.key, startedAt, turn, end, state: PREPARING };
    queue.flight = flight;
    void ownCalls({ use: "collects", parts: equalParts(blocks) }, () => run(flight))
      .catch((error: unknown): End =>
        error instanceof NoRoomError
          ? { kind: "no-room", error, blocks: new Set(blocks) }
          : { kind: "failed", error, mints: [], isFollowed: false },
      )
      .then((result) => {
        queue.flight = undefined;
        const error = "error" in result ? result.error : undefined;
        // A request that has no calls left is counted by the collector.
        if (error !== undefined && result.kind !== "no-room") metrics.ended(resultOf(error));
        finish(result);
        for (const [waiter, { resolve }] of queue.waiters) {
          const isMember = turn?.members.has(waiter) ?? false;
          if (!isMember && !isServed(waiter, result)) continue;
          queue.waiters.delete(waiter);
          resolve({ end: result, isMember });
        }
        takeTurn(queue, { isLater: true });
      });
    return flight;
  }

  /** Follows a transaction that another replica has stored. */
  function followOpen(
    key: string,
    { account, caller }: Request,
    claim: Pick<Claim, "settle">,
    transaction: StoredTransaction,
  ): Flight {
    const queue = queueOf(key);
    if (queue.flight) return queue.flight;
    return launch(queue, undefined, [caller.addressBlock], (flight) =>
      conclude(flight, { key, account, claim, transaction }),
    );
  }

  /** Claims the unit, and signs, sends and confirms its transaction. */
  async function fly(flight: Flight, turn: Turn): Promise<End> {
    const { unit, request } = turn.leader;
    const endsAt = addMs(monotonicNow(), collectTimeoutMs);
    const hasSweeps = unit.sweeps.length > 0;
    // After a common transaction failed on the chain, each account goes alone.
    let mayShare = !hasSweeps;
    for (let isLater = turn.isLater; ; isLater = true) {
      flight.state = PREPARING;
      const getting = getReady(flight, turn, endsAt, isLater);
      const ready = await (hasSweeps ? getting : transactions.expect(getting));
      if (ready.kind === "nothing") return ready;
      const end =
        ready.kind === "ready"
          ? await signAndSend(flight, ready, mayShare)
          : await conclude(flight, { ...ready, key: unit.key, account: request.account, turn });
      if (end.kind !== "shared-failed") return end;
      mayShare = false;
    }
  }

  /** Signs and sends the transaction of a unit, and waits for its outcome. */
  async function signAndSend(
    flight: Flight,
    ready: ReadyUnit & { readonly readAt: MonotonicTime },
    mayShare: boolean,
  ): Promise<End> {
    const { unit, claim, turn, readAt } = ready;
    const { account, caller, log } = turn.leader.request;
    const preparation = await transactions.prepare(ready, { mayShare }).catch((error: unknown) => {
      claim.settle();
      throw error;
    });
    if (preparation.kind !== "signed") {
      claim.settle();
      const end = { ...preparation, readAt, payers: turn.payers };
      return end;
    }
    const { signed } = preparation;
    const { transaction } = signed;
    if (unit.kind === "distribution")
      await Promise.all(
        accountsOf(turn, account).map(({ address }) => claims.keepPending(address, transaction)),
      );
    const block = caller.visitorBlock;
    const { key } = unit;
    return conclude(flight, { key, account, claim, turn, transaction, signed, block, log });
  }

  /** Takes the unit's claim, and reads the unit again if it may have changed. */
  async function getReady(
    flight: Flight,
    turn: Turn,
    endsAt: MonotonicTime,
    isLater: boolean,
  ): Promise<
    | Nothing
    | (ReadyUnit & { readonly kind: "ready"; readonly readAt: MonotonicTime })
    | { readonly kind: "open"; readonly claim: Claim; readonly transaction: StoredTransaction }
  > {
    const { unit, read, request } = turn.leader;
    const { account, caller } = request;
    const claim = await takeClaim(flight, endsAt);
    const [sweep] = unit.sweeps;
    const changedAddress = unit.kind === "own" || !sweep ? account.address : sweep.coin.curve;
    floors.require(changedAddress, claim.landedSlot);
    const { openTransaction } = claim;
    if (openTransaction) return { kind: "open", claim, transaction: openTransaction };
    flight.state = PREPARING;
    const coins =
      unit.kind === "own" ? [...turn.coins.values()] : unit.sweeps.map(({ coin }) => coin);
    const isStale = isLater || claim.landedSlot > read.fees.slot;
    const isPart = unit.kind === "own" && coins.length > coinsOf(unit).size;
    const current =
      isStale || isPart
        ? await readUnits({ account, coins }, caller.visitorBlock).catch((error: unknown) => {
            claim.settle();
            throw error;
          })
        : read;
    const { fees, at: readAt } = current;
    const currentUnit = current === read ? unit : current.units.find(({ key }) => key === unit.key);
    if (
      currentUnit &&
      currentUnit.gain >= minCollectLamports &&
      isWorthwhile(turn, currentUnit.gain)
    )
      return { kind: "ready", unit: currentUnit, claim, fees, turn, endsAt, readAt };
    claim.settle();
    const error = currentUnit ? undefined : current.error;
    return { kind: "nothing", error, failedMints: [], readAt };
  }

  async function takeClaim(flight: Flight, endsAt: MonotonicTime): Promise<Claim> {
    const token = randomUUID();
    let claim = await claims.take(flight.key, token);
    while ("holder" in claim) {
      if (monotonicNow() > endsAt) throw new CollectError({ kind: "lease-not-acquired" });
      flight.state = { kind: "waiting" };
      await sleep(CLAIM_POLL_MS);
      claim = await claims.take(flight.key, token, claim.holder);
    }
    return claim;
  }

  /** Sends its own transaction, or follows another's, until the outcome, and settles it. */
  async function conclude(
    flight: Flight,
    inFlight: Omit<SentTransaction, "sentAt">,
  ): Promise<TransactionEnd> {
    const { transaction, signed } = inFlight;
    const { signature } = transaction;
    const sentAt = monotonicNow();
    flight.state = { kind: signed ? "sent" : "following", signature };
    const outcome = await confirm(transaction, { maybeSent: !signed });
    if (outcome.kind === "landed" && outcome.err === null)
      flight.state = { kind: "landed", signature };
    return settleTransaction({ ...inFlight, sentAt }, outcome);
  }

  return {
    /** Waits for a step after which a request without coins may have a turn. */
    expect: transactions.expect,

    /**
     * Returns the flight of a unit whose transaction is open, if any. Follows what another replica
     * has stored. `asker`: the request that asks.
     */
    async findOpen(key: string, asker: Request): Promise<Flight | undefined> {
      const running = queues.get(key)?.flight;
      if (running) return running.state.kind === "preparing" ? undefined : running;
      const claim = await claims.look(key);
      const { openTransaction } = claim;
      return openTransaction && followOpen(key, asker, claim, openTransaction);
    },

    /** Follows a distribution that a replica signed for the account before it died. */
    followPending(transaction: StoredTransaction, asker: Request): Flight | undefined {
      const [mint] = transaction.sweptMints ?? [];
      if (mint === undefined) return undefined;
      const { address } = coinAddressesOf(mint).sharingConfig;
      return followOpen(address, asker, { settle: () => undefined }, transaction);
    },

    /** Joins the flight of an account's turn without coins that has signed nothing yet, if any. */
    join(request: Request): Flight | undefined {
      const flight = queues.get(request.account.address)?.flight;
      if (flight?.state.kind !== "preparing" || !isPlain(flight.turn)) return undefined;
      addTo(flight.turn, { request });
      return flight;
    },

    /** Joins the unit's flight, or waits for the next turn. Rejects with the signal's reason. */
    async run(unit: Unit, read: ReadUnits, request: Request, signal: AbortSignal): Promise<Result> {
      const queue = queueOf(unit.key);
      const waiter = { request, unit, read };
      const result = Promise.withResolvers<Result>();
      queue.waiters.set(waiter, result);
      const { turn, state } = queue.flight ?? {};
      const isUnsigned = state?.kind === "preparing" || state?.kind === "waiting";
      if (!queue.flight) takeTurn(queue, { isLater: false });
      else if (isUnsigned && isPlain(turn) && coinsOf(unit).size === 0) addTo(turn, waiter);
      try {
        return await untilAborted(result.promise, signal);
      } finally {
        queue.waiters.delete(waiter);
      }
    },

    /** The state of these units' flight in this process: of one that has signed, if any. */
    stateOf(keys: readonly string[]): FlightState | undefined {
      const states = keys.flatMap((key) => queues.get(key)?.flight?.state ?? []);
      return states.find((state) => openSignature(state) !== undefined) ?? states[0];
    },

    /** Resolves when no transaction is in flight, and none is being prepared. */
    async settled(): Promise<void> {
      for (;;) {
        const ends = [...queues.values()].flatMap(({ flight }) => flight?.end ?? []);
        if (ends.length === 0) return;
        await Promise.all(ends);
      }
    },

    /** For the operator: what is being collected now. Lists `most` units at most. */
    describe: (most: number) => ({
      openCount: queues.size,
      open: [...queues.values()].slice(0, most).flatMap(({ key, flight, waiters }) => {
        if (!flight) return [];
        const { turn, state, startedAt } = flight;
        // These have joined before they read, and so wait for no queue.
        const joined = [...(turn?.members ?? [])].filter(({ read }) => !read);
        return {
          unit: key,
          state: state.kind,
          signature: openSignature(state),
          ageSeconds: Math.round(msSince(startedAt) / 1_000),
          waiters: waiters.size + joined.length,
        };
      }),
    }),

    openSignatures: () => [
      ...new Set(
        [...queues.values()].flatMap(({ flight }) =>
          flight ? (openSignature(flight.state) ?? []) : [],
        ),
      ),
    ],
  };
}

/** Whether a turn has none of the account's own coins: requests without coins may join. */
const isPlain = (turn: Turn | undefined): turn is Turn => turn?.coins.size === 0;

/** Whether another turn's transaction serves a waiting request. */
function isServed({ request, read }: Waiter, end: End): boolean {
  if (end.kind !== "landed" || end.slot <= read.newestSlot) return false;
  return hasNamedCoin(request.coins, end.moved);
}

const resultOf = (error: unknown) =>
  error instanceof CollectError ? error.result : "COLLECT_FAILED";
