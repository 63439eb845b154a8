import type { Logger } from "../../observability/log.ts";
import { toError } from "../../observability/thrown.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { CollectError, mayHaveMoved } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import { untilAborted, withDeadline } from "../../upstream/deadline.ts";
import { NoRoomError } from "../errors/no-room-error.ts";
import { collectableWith } from "../launchpad/choose-sweeps.ts";
import type { CollectedWallet } from "../balances/balances.ts";
import { MAX_LISTED } from "./claim-scripts.ts";
import type { Claims, LastCollect } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { End, Flight, Flights } from "./flights.ts";
import type { CollectCaller, Request } from "./turns.ts";
import { lateError, openSignature } from "./flight-state.ts";
import {
  hasNamedCoin,
  type LeftFees,
  type LeftReason,
  type ReadUnits,
  type ReadUnitsOf,
  type Attempt,
  type Unit,
} from "../units/units.ts";

/** What every answer says of the account. */
interface AccountHistory {
  /** The newest other collects of the last hour, the newest first. */
  readonly lastCollects: readonly LastCollect[];
}

export type CollectAnswer = CollectOutcome &
  AccountHistory & {
    /** What the request's own read saw, and the collect left behind. */
    readonly left: readonly LeftFees[];
  };

/**
 * Why a collect has no result. `left`: undefined if nothing was read. Holds if nothing was moved.
 */
export type FailedCollect = AccountHistory & {
  readonly kind: "failed";
  readonly error: unknown;
  readonly left: readonly LeftFees[] | undefined;
};

/** What the request's own reads and tries have shown so far. */
interface Progress {
  read: ReadUnits | undefined;
  transaction: Attempt["transaction"];
  readonly reasons: Map<string, LeftReason | null>;
  /** The keys of the units whose flights it waits for. */
  waitsFor: readonly string[];
}

/** The result of a collect: the fees that a landed transaction moved, or nothing to collect. */
export type CollectOutcome =
  | {
      readonly kind: "collected";
      /** The lamports that the transaction moved to the address. */
      readonly collected: Lamports;
      /** The withdrawable lamports at the address right after the transaction. */
      readonly newBalance: Lamports;
      readonly signature: string;
    }
  | {
      readonly kind: "nothing";
      /** What a transaction would move, if that is less than the caller's minimum. */
      readonly belowMinimum?: Lamports | undefined;
      /** How many more lamports of fees the address needs to become rent-exempt, if any. */
      readonly missing?: Lamports | undefined;
    };

type Success = CollectOutcome & { readonly kind: "collected" };

/** What follows for a request from the end of a flight. */
type Next =
  | { readonly kind: "answer"; readonly success: Success }
  | { readonly kind: "fail"; readonly error: unknown }
  /** The unit has nothing for it, or `error` says why not: the next unit is tried. */
  | { readonly kind: "next-unit"; readonly error?: CollectError }
  | { readonly kind: "look-again" };

const LOOK_AGAIN = { kind: "look-again" } as const;

const largestGain = (units: readonly Unit[]): Lamports =>
  units.reduce((most, { gain }) => (gain > most ? gain : most), toLamports(0));

const isOfKind = (error: unknown, ...kinds: CollectError["failure"]["kind"][]): boolean =>
  error instanceof CollectError && kinds.includes(error.failure.kind);

/** Why a collect that failed left its fees. */
const reasonOf = (error: unknown): LeftReason =>
  isOfKind(error, "backing-off", "coins-backing-off") ? "BACKING_OFF" : "FAILED";

/** How many units may fail their simulation. */
const MAX_FAILED_SIMULATIONS = 2;
/** How many of a request's transactions may move nothing: each costs a fee. */
const MAX_VAIN_TRANSACTIONS = 2;
/** The calls to the chain of most collects. */
const USUAL_CALLS = 10;

export type Collector = ReturnType<typeof createCollector>;

/**
 * Moves accounts' fees from their vaults to their addresses. The only part of the service that
 * spends money.
 *
 * A request follows the open transactions of its units, reads the account with the named coins, and
 * works through the units until one has moved something for it. It holds no claim: a unit's flight
 * does (flights.ts), and all requests that wait for the unit share its transaction.
 */
export function createCollector(needs: {
  flights: Flights;
  readUnits: ReadUnitsOf;
  claims: Pick<Claims, "look" | "readCollects">;
  metrics: CollectMetrics;
  /** Runs a request's reads, which belong to its address block. */
  ownCalls: ChainCallPlan["own"];
  /** Limits how long a caller waits after its request. */
  collectTimeoutMs: number;
  log: Logger;
}) {
  const { flights, readUnits, claims, metrics, ownCalls, collectTimeoutMs } = needs;

  /** Collects, and records the progress. Throws why it has failed. */
  async function run(
    request: Request,
    signal: AbortSignal,
    progress: Progress,
  ): Promise<CollectOutcome> {
    const { account, coins, caller, askedAt } = request;
    const keys = [account.address, ...coins.map(({ sharingConfig }) => sharingConfig.address)];
    /**
     * Counts if nothing else is collected: the result of a transaction without the named coins, or
     * the error of one that may have paid the account.
     */
    let fallback: Success | CollectError | undefined;
    /** The keys of the units whose transactions moved nothing, one for each transaction. */
    const vainUnits: string[] = [];
    /** The keys of the units that were empty at their turn: the account was read again. */
    const emptyUnits = new Set<string>();
    let hasFollowedPending = false;

    /** Says what follows from the end of a flight. `read`: the request's, if any. */
    async function judge(end: End, isMember: boolean, read?: ReadUnits): Promise<Next> {
      const isNamed = (mints: readonly string[]) =>
        mints.length === 0 || coins.some(({ mint }) => mints.includes(mint));
      switch (end.kind) {
        case "landed": {
          // Signed after the request, or landed after its read. With a false success, callers
          // would count one collect twice.
          const isOwn = isMember && end.signedAt !== undefined && end.signedAt >= askedAt;
          const isLater = isOwn || (read !== undefined && end.slot > read.newestSlot);
          const collecting = end.collectedBy(account);
          // Also an earlier transaction is the account's last collect.
          const collect = await untilAborted(
            isLater ? collecting : collecting.catch(() => undefined),
            signal,
          );
          if (!collect || !isLater) {
            if (isOwn) vainUnits.push(end.key);
            return LOOK_AGAIN;
          }
          const { collected, newBalance, signature } = collect;
          const success = { kind: "collected", collected, newBalance, signature } as const;
          progress.transaction = { key: end.key, moved: end.moved };
          if (isOwn || hasNamedCoin(coins, end.moved)) return { kind: "answer", success };
          fallback = success;
          return LOOK_AGAIN;
        }
        case "nothing":
          if (!isNamed(end.failedMints)) return LOOK_AGAIN;
          if (end.error) return { kind: "next-unit", error: end.error };
          return isMember && end.readAt >= askedAt ? { kind: "next-unit" } : LOOK_AGAIN;
        case "refused": {
          const shortage = end.payers.get(caller.addressBlock);
          const { failure } = end.error;
          if (!shortage || failure.kind !== "budget-spent") return LOOK_AGAIN;
          return { kind: "next-unit", error: new CollectError({ ...failure, ...shortage }) };
        }
        case "no-room":
          // If the calls of this request's block are used up too, its next read says so.
          return end.error.shortage.scope === "CALLER" || !end.blocks.has(caller.addressBlock)
            ? LOOK_AGAIN
            : { kind: "fail", error: end.error };
        case "claim-lost":
        case "shared-failed":
          return LOOK_AGAIN;
        case "failed": {
          const { error } = end;
          // Another request began the flight, and its time was over earlier.
          const isEarly = msSince(askedAt) < collectTimeoutMs;
          if (isEarly && isOfKind(error, "timed-out", "lease-not-acquired")) return LOOK_AGAIN;
          if (isMember && !end.isFollowed && isNamed(end.mints)) return { kind: "fail", error };
          if (!mayHaveMoved(error)) return LOOK_AGAIN;
          if (error.failure.kind !== "unknown") return { kind: "fail", error };
          fallback = error;
          return LOOK_AGAIN;
        }
      }
    }

    /** Waits for a flight that this request has not started, and looks again without an answer. */
    async function waitFor(flight: Flight, isMember: boolean, read?: ReadUnits): Promise<Next> {
      progress.waitsFor = [flight.key];
      const next = await judge(await untilAborted(flight.end, signal), isMember, read);
      return next.kind === "next-unit" ? LOOK_AGAIN : next;
    }

    /** Reads the account, and finds the flights whose transactions are open. */
    async function look(): Promise<{ read: ReadUnits | undefined; open: readonly Flight[] }> {
      progress.waitsFor = keys;
      const [read, ...flightsOfKeys] = await Promise.all([
        readUnits(request, caller.visitorBlock).catch(toError),
        ...keys.map((key) => flights.findOpen(key, request)),
      ]);
      const open = flightsOfKeys.flatMap((flight) => flight ?? []);
      if (!(read instanceof Error)) return { read: (progress.read = read), open };
      // What is open may have moved something, whether or not the account can be read.
      if (open.length === 0) throw read;
      return { read: undefined, open };
    }

    /** Works through the units until one has moved something. Returns undefined to look again. */
    async function workThrough(read: ReadUnits): Promise<CollectOutcome | undefined> {
      const errors: CollectError[] = [];
      progress.reasons.clear();
      const { fees } = read;
      const missing = fees.missingRent - collectableWith(fees.sweeps, fees.vaults);
      const small = read.units.filter(({ gain }) => gain < request.minimum);
      const triesOf = ({ key }: Unit) => vainUnits.filter((each) => each === key).length;
      const units = read.units.toSorted((a, b) => triesOf(a) - triesOf(b));
      for (const unit of units) {
        if (small.includes(unit)) continue;
        if (vainUnits.length >= MAX_VAIN_TRANSACTIONS) {
          errors.push(new CollectError({ kind: "others-first" }));
          break;
        }
        if (
          errors.filter((each) => isOfKind(each, "simulation-failed")).length >=
          MAX_FAILED_SIMULATIONS
        )
          break;
        progress.waitsFor = [unit.key];
        const { end, isMember } = await flights.run(unit, read, request, signal);
        const next = await judge(end, isMember, read);
        switch (next.kind) {
          case "answer":
            return next.success;
          case "fail":
            throw next.error;
          case "look-again":
            return undefined;
          case "next-unit": {
            // Fees may have arrived elsewhere, while somebody else collected these.
            if (!next.error && coins.length > 0 && !emptyUnits.has(unit.key)) {
              emptyUnits.add(unit.key);
              return undefined;
            }
            if (next.error) errors.push(next.error);
            // Unless an empty address would stay below its minimum, others have collected it.
            const whyNothing = missing > 0n ? "BELOW_MINIMUM" : null;
            progress.reasons.set(unit.key, next.error ? reasonOf(next.error) : whyNothing);
          }
        }
      }
      const error = errors[0] ?? (small.length > 0 ? undefined : read.error);
      if (error) throw error;
      if (fallback instanceof CollectError) throw fallback;
      if (fallback) return fallback;
      const { pending } = await claims.look(account.address);
      if (pending && !hasFollowedPending) {
        hasFollowedPending = true;
        const flight = flights.followPending(pending, request);
        return flight && toOutcome(await waitFor(flight, false, read));
      }
      return {
        kind: "nothing",
        belowMinimum: small.length > 0 ? largestGain(small) : undefined,
        // Only a simulation tells that too little would arrive.
        missing: units.length > 0 && missing > 0n ? toLamports(missing) : undefined,
      };
    }

    /** Follows what is open, or works through the units. Returns undefined to look again. */
    async function lookAndCollect(): Promise<CollectOutcome | undefined> {
      const looking = untilAborted(look(), signal);
      const { open, read } = await (coins.length > 0 ? looking : flights.expect(looking));
      for (const flight of open) {
        const outcome = toOutcome(await waitFor(flight, false, read));
        if (outcome) return outcome;
      }
      return read && open.length === 0 ? workThrough(read) : undefined;
    }

    const joinedFlight = coins.length === 0 ? flights.join(request) : undefined;
    let outcome: CollectOutcome | undefined =
      joinedFlight && toOutcome(await waitFor(joinedFlight, true));
    while (!outcome) {
      outcome = await lookAndCollect().catch((error: unknown) => {
        if (!fallback || mayHaveMoved(error)) throw error;
        if (fallback instanceof CollectError) throw fallback;
        return fallback;
      });
    }
    return outcome;
  }

  /** Runs a collect until the caller's deadline. */
  async function runUntilLate(request: Request, progress: Progress): Promise<CollectOutcome> {
    const { caller, askedAt } = request;
    const leftMs = collectTimeoutMs - msSince(askedAt);
    if (leftMs <= 0) throw lateError(flights.stateOf(progress.waitsFor));
    return withDeadline(leftMs, async (signal) => {
      try {
        const parts = equalParts([caller.addressBlock]);
        const outcome = await ownCalls(
          { use: "collects", parts, signal },
          () => run(request, signal, progress),
          USUAL_CALLS,
        );
        if (outcome.kind === "nothing") metrics.ended("nothing");
        return outcome;
      } catch (error) {
        // All other errors are a flight's, which counts them.
        if (error instanceof NoRoomError) metrics.ended("refused");
        if (isOfKind(error, "others-first")) metrics.ended("COLLECT_FAILED");
        const state = flights.stateOf(progress.waitsFor) ?? { kind: "preparing" };
        const isOpen = signal.aborted && openSignature(state) !== undefined;
        throw error === signal.reason || isOpen ? lateError(state) : error;
      }
    });
  }

  return {
    /**
     * Collects fees of an account and its coins: a transaction of the account's vaults and coins,
     * or of one coin whose fees are shared. If no transaction would move the minimum, nothing is
     * simulated; a caller who joins a transaction gets its outcome, whatever its minimum.
     * `addressBlock` pays, unless another block already does.
     * The caller waits at most `collectTimeoutMs` after its request's start (`startedAt`); the
     * transaction itself continues. `error`: a {@link CollectError}, an {@link RpcError}, a {@link
     * NoRoomError}, or an error that marks a bug.
     */
    async collect(
      { account, coins, minimum = toLamports(0) }: CollectedWallet,
      caller: CollectCaller,
      startedAt: MonotonicTime,
      log = needs.log,
    ): Promise<CollectAnswer | FailedCollect> {
      const request = { account, coins, minimum, caller, askedAt: startedAt, log };
      const progress: Progress = {
        ...{ read: undefined, transaction: undefined, reasons: new Map() },
        waitsFor: [account.address],
      };
      const outcome = await runUntilLate(request, progress).catch((error: unknown) => ({
        kind: "failed" as const,
        error,
      }));
      const { read, reasons, transaction } = progress;
      const left = read?.leftAfter(
        outcome.kind === "failed"
          ? { minimum, reasons, otherwise: reasonOf(outcome.error) }
          : { minimum, transaction, reasons, otherwise: "NO_ROOM" },
      );
      const own = outcome.kind === "collected" ? outcome.signature : undefined;
      const collects = await claims.readCollects(account.address);
      const others = collects.filter(({ signature }) => signature !== own);
      const lastCollects = others.slice(0, MAX_LISTED);
      return outcome.kind === "failed"
        ? { ...outcome, left, lastCollects }
        : { ...outcome, left: left ?? [], lastCollects };
    },

    settled: flights.settled,
    openSignatures: flights.openSignatures,
  };
}

/** Returns undefined to look again. */
function toOutcome(next: Next): Success | undefined {
  if (next.kind === "fail") throw next.error;
  return next.kind === "answer" ? next.success : undefined;
}
