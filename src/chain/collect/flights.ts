import { toWideBlock } from "../../fairness/budget.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { addMs, monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";
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
import type { Ended, SettleTransaction, TransactionEnd } from "./settle-landed-or-expired.ts";
import type { Prepared, Transactions } from "./prepare-and-sign.ts";
import {
  accountsOf,
  addTo,
  blockOf,
  coinsOf,
  mayJoin,
  nextTurn,
  type Request,
  type Turn,
  type Waiter,
} from "./turns.ts";

/** How a unit's transaction, or the attempt to sign one, ended. */
export type End =
  | TransactionEnd
  /** `readAt`: when the read began that showed it. It says nothing to who asked later. */
  | (Extract<Prepared, { readonly kind: "nothing" }> & { readonly readAt: MonotonicTime })
  /** The fee budget refuses the payers, each for its own reason. */
  | { readonly kind: "refused"; readonly error: CollectError; readonly payers: Payers };

type SignedUnit = Extract<Prepared, { readonly kind: "signed" }>;

/** What a request receives that waited for a unit. */
export interface Result {
  readonly end: End;
  /** Whether the request had the turn. */
  readonly isMember: boolean;
  readonly flight: Flight;
}

/** A unit's transaction, from the first wait for its claim until its outcome is known. */
export interface Flight {
  /** The unit's. */
  readonly key: string;
  readonly state: () => FlightState;
  readonly end: Promise<End>;
  /** The address blocks that had the turn when it began. */
  readonly blocks: ReadonlySet<string>;
}

/** The requests that wait for a unit, and the unit's flight. */
interface Queue {
  readonly key: string;
  /** What to call for each request with the end of a flight that serves it. */
  readonly waiters: Map<Waiter, (result: Result) => void>;
  /** How many turns each address block, and each IPv6 /32, has had. */
  readonly counts: Map<string, number>;
  /** `turn`: undefined while another replica's transaction is followed before a read. */
  flight: (Flight & { readonly turn: Turn | undefined }) | undefined;
}

type OpenFlight = ReturnType<typeof openFlight>;

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
  confirmation: Pick<Confirmation, "confirm" | "findLanded">;
  settleTransaction: SettleTransaction;
  minCollectLamports: Lamports;
  metrics: CollectMetrics;
  /** Runs a flight, whose calls to the chain belong to the blocks that have the turn. */
  ownCalls: ChainCallPlan["own"];
  /** Limits how long a flight may take until it signs. */
  collectTimeoutMs: number;
}) {
  const { readUnits, transactions, claims, floors, settleTransaction } = needs;
  const { minCollectLamports, metrics, ownCalls, collectTimeoutMs } = needs;
  const { confirm, findLanded } = needs.confirmation;
  const queues = new Map<string, Queue>();

  function queueOf(key: string): Queue {
    const queue = queues.get(key) ?? {
      ...{ key, waiters: new Map(), counts: new Map(), flight: undefined },
    };
    queues.set(key, queue);
    return queue;
  }

  /** Starts a unit's flight. When it is over, the next turn begins. */
  function launch(
    queue: Queue,
    turn: Turn | undefined,
    run: (flight: OpenFlight) => Promise<End>,
  ): Queue["flight"] & object {
    const open = openFlight();
    const end = run(open).catch((error: unknown): End => ({
      kind: "failed",
      error,
      mints: [],
      isFollowed: false,
    }));
    const blocks = new Set(turn?.payers.keys());
    const flight = { ...open, key: queue.key, end, turn, blocks };
    queue.flight = flight;
    void end.then((result) => {
      open.setState({ kind: "over" });
      queue.flight = undefined;
      const error = "error" in result ? result.error : undefined;
      // A request that has no calls left is counted by the collector.
      if (error !== undefined && !(error instanceof NoRoomError)) metrics.ended(resultOf(error));
      for (const [waiter, resolve] of queue.waiters) {
        const isMember = turn?.members.has(waiter) ?? false;
        if (!isMember && !isServed(waiter, result)) continue;
        queue.waiters.delete(waiter);
        resolve({ end: result, isMember, flight });
      }
      takeTurn(queue, { isLater: true });
    });
    return flight;
  }

  function takeTurn(queue: Queue, { isLater }: { isLater: boolean }): void {
    const { counts, waiters } = queue;
    const turn = nextTurn([...waiters.keys()], counts, isLater);
    if (!turn) {
      queues.delete(queue.key);
      return;
    }
    const block = blockOf(turn.leader);
    if (turn.coins.size > 0)
      for (const each of new Set([block, toWideBlock(block) ?? block]))
        counts.set(each, (counts.get(each) ?? 0) + 1);
    const parts = equalParts([...turn.payers.keys()]);
    launch(queue, turn, (flight) =>
      transactions.expecting(turn.leader.unit.sweeps.length > 0, (arrive) =>
        ownCalls({ use: "collects", parts }, () => fly(flight, queue.key, turn, arrive)),
      ),
    );
  }

  /** Follows a transaction that another replica has stored. */
  function followOpen(
    key: string,
    { account, caller }: Request,
    claim: Pick<Claim, "settle">,
    transaction: StoredTransaction,
  ): Flight {
    const queue = queueOf(key);
    const parts = equalParts([caller.addressBlock]);
    return (
      queue.flight ??
      launch(queue, undefined, (flight) =>
        ownCalls({ use: "collects", parts }, () =>
          follow({ flight, key, account, claim, transaction }),
        ),
      )
    );
  }

  /** Claims the unit, and signs, sends and confirms its transaction. */
  async function fly(
    flight: OpenFlight,
    key: string,
    turn: Turn,
    arrive: () => void,
  ): Promise<End> {
    const { request, unit } = turn.leader;
    const { account, caller } = request;
    const endsAt = addMs(monotonicNow(), collectTimeoutMs);
    const [sweep] = unit.sweeps;
    const changedAddress = unit.kind === "own" || !sweep ? account.address : sweep.coin.curve;
    const claim = await claims.take(key, endsAt, () => {
      flight.setState({ kind: "following", signature: undefined });
    });
    floors.require(changedAddress, claim.landedSlot);
    const common = { flight, key, account, claim, turn };
    if (claim.openTransaction) {
      arrive();
      return follow({ ...common, transaction: claim.openTransaction });
    }
    flight.setState({ kind: "preparing" });
    const preparation = await prepare(turn, claim, endsAt, arrive).catch((error: unknown) => {
      claim.settle();
      if (!(error instanceof CollectError) || error.failure.kind !== "budget-spent") throw error;
      return { kind: "refused", error, payers: turn.payers } as const;
    });
    if (preparation.kind !== "signed") {
      claim.settle();
      return preparation;
    }
    const { signed } = preparation;
    const { transaction } = signed;
    if (key !== account.address)
      await Promise.all(
        accountsOf(turn, account).map(({ address }) => claims.keepPending(address, transaction)),
      );
    flight.setState({ kind: "sent", signature: transaction.signature });
    const outcome = await confirm(transaction, { maybeSent: false });
    signed.close({ refund: false });
    const block = caller.visitorBlock;
    return settleTransaction({ ...common, transaction, outcome, signed, block }, request.log);
  }

  /** Reads the unit again if it may have changed, and prepares its transaction. */
  async function prepare(
    turn: Turn,
    claim: Claim,
    endsAt: MonotonicTime,
    arrive: () => void,
  ): Promise<Exclude<End, { kind: "landed" | "failed" | "refused" }> | SignedUnit> {
    const { unit, read, request } = turn.leader;
    const { account, caller } = request;
    const coins =
      unit.kind === "own" ? [...turn.coins.values()] : unit.sweeps.map(({ coin }) => coin);
    const isStale = turn.isLater || claim.landedSlot > read.fees.slot;
    const isPart = unit.kind === "own" && coins.length > coinsOf(unit).size;
    const current =
      isStale || isPart ? await readUnits({ account, coins }, caller.visitorBlock) : read;
    const currentUnit = current === read ? unit : current.units.find(({ key }) => key === unit.key);
    const isTooLittle = (movedAmount: Lamports) =>
      movedAmount < minCollectLamports ||
      [...turn.members].every((member) => movedAmount < member.request.minimum);
    if (!currentUnit || isTooLittle(currentUnit.gain)) {
      const error = currentUnit ? undefined : current.error;
      return { kind: "nothing", error, failedMints: [], readAt: current.at };
    }
    arrive();
    const preparation = await transactions.prepare({
      unit: currentUnit,
      ...{ claim, fees: current.fees, payers: turn.payers, endsAt, isTooLittle },
    });
    return preparation.kind === "nothing" ? { ...preparation, readAt: current.at } : preparation;
  }

  /** Follows another collect's transaction to its outcome. */
  async function follow(openTransaction: Omit<Ended, "outcome">): Promise<End> {
    const { flight, transaction } = openTransaction;
    const { signature } = transaction;
    flight.setState({ kind: "following", signature });
    const earlierLanding = await findLanded(transaction).catch((cause: unknown) => {
      throw new CollectError({ kind: "still-running", signature }, cause);
    });
    const outcome = earlierLanding ?? (await confirm(transaction, { maybeSent: true }));
    return settleTransaction({ ...openTransaction, outcome, isOld: earlierLanding !== undefined });
  }

  return {
    expecting: transactions.expecting,

    /**
     * Returns the flight of a unit whose transaction is open, if any. Follows what another replica
     * has stored. `asker`: the request that asks.
     */
    async findOpen(key: string, asker: Request): Promise<Flight | undefined> {
      const running = queues.get(key)?.flight;
      const isOpen = running && !["preparing", "over"].includes(running.state().kind);
      if (running) return isOpen ? running : undefined;
      const claim = await claims.look(key);
      const { openTransaction } = claim;
      return openTransaction && followOpen(key, asker, claim, openTransaction);
    },

    /** Follows a distribution that a replica signed for the account before it died. */
    followPending(transaction: StoredTransaction, asker: Request): Flight | undefined {
      const [mint] = transaction.sweptMints ?? [];
      if (mint === undefined) return undefined;
      const { address } = coinAddressesOf(mint).sharingConfig;
      const claim = { settle: () => undefined };
      return followOpen(address, asker, claim, transaction);
    },

    /** Joins the flight of an account's turn without coins that has signed nothing yet, if any. */
    join(request: Request): Flight | undefined {
      const { flight } = queues.get(request.account.address) ?? {};
      const turn = flight?.state().kind === "preparing" ? flight.turn : undefined;
      if (!turn || !mayJoin(turn, [], "")) return undefined;
      addTo(turn, { request });
      return flight;
    },

    /** The flight of a unit in this process. */
    flightOf: (key: string): Flight | undefined => queues.get(key)?.flight,

    /** Joins the unit's flight, or waits for the next turn. Rejects with the signal's reason. */
    async run(unit: Unit, read: ReadUnits, request: Request, signal: AbortSignal): Promise<Result> {
      const queue = queueOf(unit.key);
      const { promise, resolve } = Promise.withResolvers<Result>();
      const waiter = { request, unit, read };
      queue.waiters.set(waiter, resolve);
      const turn = queue.flight && openTurnOf(queue.flight);
      if (!queue.flight) takeTurn(queue, { isLater: false });
      else if (turn && mayJoin(turn, [...coinsOf(unit).keys()], blockOf(waiter)))
        addTo(turn, waiter);
      try {
        return await untilAborted(promise, signal);
      } finally {
        queue.waiters.delete(waiter);
      }
    },

    /** Resolves when no transaction is in flight, and none is being prepared. */
    async settled(): Promise<void> {
      for (;;) {
        const ends = [...queues.values()].flatMap(({ flight }) => flight?.end ?? []);
        if (ends.length === 0) return;
        await Promise.allSettled(ends);
      }
    },

    openSignatures: () => [
      ...new Set(
        [...queues.values()].flatMap(({ flight }) =>
          flight ? (openSignature(flight.state()) ?? []) : [],
        ),
      ),
    ],
  };
}

/** A flight that has just begun. */
function openFlight() {
  let state: FlightState = { kind: "preparing" };
  return {
    state: () => state,
    setState(next: FlightState): void {
      state = next;
    },
  };
}

/** Returns the turn of a flight that requests may still join, because nothing is signed. */
function openTurnOf({ state, turn }: NonNullable<Queue["flight"]>): Turn | undefined {
  return ["preparing", "following"].includes(state().kind) ? turn : undefined;
}

/** Whether another turn's transaction serves a waiting request. */
function isServed({ request, read }: Waiter, end: End): boolean {
  if (end.kind !== "landed" || end.slot <= read.newestSlot) return false;
  return hasNamedCoin(request.coins, end.moved);
}

const resultOf = (error: unknown) =>
  error instanceof CollectError ? error.result : "COLLECT_FAILED";
