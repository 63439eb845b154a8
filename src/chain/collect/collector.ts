import type { Logger } from "../../observability/log.ts";
import { toError } from "../../observability/thrown.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { CollectError, mayHaveMoved } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import { untilAborted, withDeadline } from "../../upstream/deadline.ts";
import { NoRoomError } from "../errors/no-room-error.ts";
import { collectableWith, type WaitingFees } from "../launchpad/choose-sweeps.ts";
import type { CollectedWallet } from "../balances/balances.ts";
import { MAX_LISTED } from "./claim-scripts.ts";
import type { Claims, LastCollect } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { End, Flight, Flights, Result } from "./flights.ts";
import type { CollectCaller, Request } from "./turns.ts";
import { lateError, openSignature, type FlightState } from "./flight-state.ts";
import type { Failures } from "../balances/failures.ts";
import {
  hasNamedCoin,
  remainingIn,
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
      /** What the request saw besides: another collect moves it. */
      readonly remaining: readonly WaitingFees[];
    }
  | {
      readonly kind: "nothing";
      /** What a transaction would move, if that is less than the caller's minimum. */
      readonly belowMinimum?: Lamports | undefined;
      /** How many more lamports of fees the address needs to become rent-exempt, if any. */
      readonly missing?: Lamports | undefined;
      /** The account's last collect, if within the last hour. */
      readonly lastCollect?: LastCollect | undefined;
    };

const largestGain = (units: readonly Unit[]): Lamports =>
  units.reduce((most, { gain }) => (gain > most ? gain : most), toLamports(0));

type Success = CollectOutcome & { readonly kind: "collected" };
type Landed = Extract<End, { kind: "landed" }>;

const isTimedOut = (error: unknown): boolean =>
  error instanceof CollectError && ["timed-out", "lease-not-acquired"].includes(error.failure.kind);

/**
 * Whether the blocks that had the turn have used their calls to the chain, or had to give way and
 * the request's block is none of them.
 */
const isOutOfCalls = (error: unknown, isOfBlock: boolean): boolean =>
  error instanceof NoRoomError && (error.shortage.scope === "CALLER" || !isOfBlock);

const isOthersFirst = (error: unknown): boolean =>
  error instanceof CollectError && error.failure.kind === "others-first";
const BACKING_OFF = ["backing-off", "coins-backing-off"];

/** Why a collect that failed left its fees. */
const reasonOf = (error: unknown): LeftReason =>
  error instanceof CollectError && BACKING_OFF.includes(error.failure.kind)
    ? "BACKING_OFF"
    : "FAILED";

/** Returns undefined if nothing was read. */
function leftIn(
  outcome: CollectOutcome | { readonly kind: "failed"; readonly error: unknown },
  { read, transaction, reasons }: Progress,
  minimum: Lamports,
): LeftFees[] | undefined {
  if (outcome.kind !== "failed")
    return read?.leftAfter({ minimum, transaction, reasons, otherwise: "NO_ROOM" });
  return read?.leftAfter({ minimum, reasons, otherwise: reasonOf(outcome.error) });
}

const PREPARING = { kind: "preparing" } as const;

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
  failures: Pick<Failures, "leftMs">;
  maxRentLamports: Lamports;
  /** Runs a request's reads, which belong to its address block. */
  ownCalls: ChainCallPlan["own"];
  /** Limits how long a caller waits after its request. */
  collectTimeoutMs: number;
  log: Logger;
}) {
  const { flights, readUnits, claims, metrics, ownCalls, collectTimeoutMs } = needs;

  /** `onWait`: called with what the request waits for. */
  async function run(
    request: Request,
    signal: AbortSignal,
    onWait: (state: () => FlightState) => void,
    progress: Progress,
  ): Promise<CollectOutcome> {
    const { account, coins, caller, askedAt } = request;
    /** The result of a transaction without the named coins: counts if nothing else is collected. */
    let earlier: Success | undefined;
    /** A transaction that may have paid the account. */
    let unknown: CollectError | undefined;
    /** The keys of the units whose transactions moved nothing, one for each transaction. */
    const vainUnits: string[] = [];
    /** The keys of the units that were empty at their turn: the account was read again. */
    const emptyUnits = new Set<string>();
    /** The signatures of the distributions that this request has followed: each once. */
    const followedSignatures = new Set<string>();

    const keys = [account.address, ...coins.map(({ sharingConfig }) => sharingConfig.address)];
    const readNow = async () => (progress.read = await readUnits(request, caller.visitorBlock));
    /** The state of an open transaction, if any. */
    const openState = (): FlightState =>
      keys
        .flatMap((key) => flights.flightOf(key)?.state() ?? [])
        .find((state) => openSignature(state) !== undefined) ?? PREPARING;

    /** Reads the account, and finds the flights whose transactions are open. */
    async function look(): Promise<{ read: ReadUnits | undefined; open: readonly Flight[] }> {
      const [read, ...flightsOfKeys] = await Promise.all([
        readNow().catch(toError),
        ...keys.map((key) => flights.findOpen(key, request)),
      ]);
      const open = flightsOfKeys.flatMap((flight) => flight ?? []);
      if (!(read instanceof Error)) return { read, open };
      // What is open may have moved something, whether or not the account can be read.
      if (open.length === 0) throw read;
      return { read: undefined, open };
    }

    /** Reads what waits after a transaction that has moved something. */
    function readRest(signature: string): Promise<ReadUnits> {
      onWait(() => ({ kind: "landed", signature }));
      return untilAborted(readNow(), signal).catch((error: unknown) => {
        if (signal.aborted) throw error;
        throw new CollectError({ kind: "landed-unreadable", signature }, error);
      });
    }

    async function toSuccess(
      { key, moved, collectedBy }: Landed,
      read: ReadUnits | undefined,
    ): Promise<Success | undefined> {
      const collect = await untilAborted(collectedBy(account), signal);
      if (!collect) return undefined;
      const { collected, newBalance, signature } = collect;
      const lastRead = read ?? (coins.length > 0 ? await readRest(signature) : undefined);
      const remaining = remainingIn(lastRead?.units ?? [], { key, moved }, needs);
      progress.transaction = { key, moved };
      return { kind: "collected", collected, newBalance, signature, remaining };
    }

    /** Returns the result; why a unit was not collected; or undefined to look again. */
    async function afterEnd(
      { end, isMember, flight }: Result,
      read?: ReadUnits,
    ): Promise<Success | CollectError | "nothing" | undefined> {
      const isNamed = (mints: readonly string[]) =>
        mints.length === 0 || coins.some(({ mint }) => mints.includes(mint));
      switch (end.kind) {
        case "landed": {
          // Signed after the request, or landed after its read. With a false success, callers
          // would count one collect twice.
          const isOwn = isMember && end.signedAt !== undefined && end.signedAt >= askedAt;
          const isLater = isOwn || (read !== undefined && end.slot > read.newestSlot);
          // Also an earlier transaction is the account's last collect.
          if (!isLater)
            await untilAborted(
              end.collectedBy(account).catch(() => undefined),
              signal,
            );
          const success = isLater ? await toSuccess(end, read) : undefined;
          if (success && (isOwn || hasNamedCoin(coins, end.moved))) return success;
          if (isOwn && !success) vainUnits.push(end.key);
          earlier = success ?? earlier;
          return undefined;
        }
        case "again":
          return undefined;
        case "nothing":
          if (!isNamed(end.failedMints)) return undefined;
          if (end.error) return end.error;
          if (end.readAt < askedAt || !isMember) return undefined;
          if (coins.length === 0 || emptyUnits.has(flight.key)) return "nothing";
          // Fees may have arrived elsewhere, while somebody else collected these.
          emptyUnits.add(flight.key);
          return undefined;
        case "refused": {
          const shortage = end.payers.get(caller.addressBlock);
          const { failure } = end.error;
          if (!shortage || failure.kind !== "budget-spent") return undefined;
          return new CollectError({ ...failure, ...shortage });
        }
        case "failed":
          // If the calls of this request's block are used up too, its next read says so.
          if (isOutOfCalls(end.error, flight.blocks.has(caller.addressBlock))) return undefined;
          // Another request began the flight, and its time was over earlier.
          if (isTimedOut(end.error) && msSince(askedAt) < collectTimeoutMs) return undefined;
          if (isMember && !end.isFollowed && isNamed(end.mints)) throw end.error;
          if (!mayHaveMoved(end.error)) return undefined;
          if (end.error.failure.kind !== "unknown") throw end.error;
          unknown = end.error;
          return undefined;
      }
    }

    /** Waits for a flight that this request has not started. */
    async function waitFor(flight: Flight, isMember: boolean, read?: ReadUnits) {
      onWait(flight.state);
      const end = await untilAborted(flight.end, signal);
      const next = await afterEnd({ end, isMember, flight }, read);
      return next instanceof CollectError || next === "nothing" ? undefined : next;
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
        const isFailed = ({ failure }: CollectError) => failure.kind === "simulation-failed";
        if (errors.filter(isFailed).length >= MAX_FAILED_SIMULATIONS) break;
        const result = flights.run(unit, read, request, signal);
        onWait(() => flights.flightOf(unit.key)?.state() ?? PREPARING);
        const unitResult = await result;
        const next = await afterEnd(unitResult, read);
        if (!next) return undefined;
        if (next instanceof CollectError) errors.push(next);
        else if (next !== "nothing") return next;
        // Unless an empty address would stay below its minimum, others have collected it.
        const whyNothing = missing > 0n ? "BELOW_MINIMUM" : null;
        progress.reasons.set(unit.key, next === "nothing" ? whyNothing : reasonOf(next));
      }
      const reason = unknown ?? errors[0] ?? (small.length > 0 ? undefined : read.error);
      if (reason) throw reason;
      if (earlier) return earlier;
      const { lastCollect, pending } = await claims.look(account.address);
      if (pending && !followedSignatures.has(pending.signature)) {
        followedSignatures.add(pending.signature);
        const flight = flights.followPending(pending, request);
        return flight && waitFor(flight, false, read);
      }
      return {
        kind: "nothing",
        belowMinimum: small.length > 0 ? largestGain(small) : undefined,
        // Only a simulation tells that too little would arrive.
        missing: units.length > 0 && missing > 0n ? toLamports(missing) : undefined,
        lastCollect,
      };
    }

    /** Follows what is open, or works through the units. Returns undefined to look again. */
    async function lookAndCollect(): Promise<CollectOutcome | undefined> {
      onWait(openState);
      const { open, read } = await flights.expecting(coins.length > 0, () =>
        untilAborted(look(), signal),
      );
      for (const flight of open) {
        const success = await waitFor(flight, false, read);
        if (success) return success;
      }
      return read && open.length === 0 ? workThrough(read) : undefined;
    }

    const joinedFlight = coins.length === 0 ? flights.join(request) : undefined;
    const sharedOutcome = joinedFlight && (await waitFor(joinedFlight, true));
    if (sharedOutcome) return sharedOutcome;
    for (;;) {
      const outcome = await lookAndCollect().catch((error: unknown) => {
        if (mayHaveMoved(error)) throw error;
        if (unknown) throw unknown;
        if (!earlier) throw error;
        return earlier;
      });
      if (outcome) return outcome;
    }
  }

  /** Runs a collect until the caller's deadline. */
  async function runUntilLate(request: Request, progress: Progress): Promise<CollectOutcome> {
    const { account, caller, askedAt } = request;
    let waitsFor: () => FlightState | undefined = () => flights.flightOf(account.address)?.state();
    const leftMs = collectTimeoutMs - msSince(askedAt);
    if (leftMs <= 0) throw lateError(waitsFor());
    return withDeadline(leftMs, async (signal) => {
      try {
        const parts = equalParts([caller.addressBlock]);
        const outcome = await ownCalls(
          { use: "collects", parts, signal },
          () => run(request, signal, (state) => (waitsFor = state), progress),
          USUAL_CALLS,
        );
        if (outcome.kind === "nothing") metrics.ended("nothing");
        return outcome;
      } catch (error) {
        // All other errors are a flight's, which counts them.
        if (error instanceof NoRoomError) metrics.ended("refused");
        if (isOthersFirst(error)) metrics.ended("COLLECT_FAILED");
        const isOpen = signal.aborted && openSignature(waitsFor() ?? PREPARING) !== undefined;
        throw error === signal.reason || isOpen ? lateError(waitsFor()) : error;
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
      const progress: Progress = { read: undefined, transaction: undefined, reasons: new Map() };
      const outcome = await runUntilLate(request, progress).catch((error: unknown) => ({
        kind: "failed" as const,
        error,
      }));
      const left = leftIn(outcome, progress, minimum);
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
