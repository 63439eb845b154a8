import type { Logger } from "../../observability/log.ts";
import { toError } from "../../observability/thrown.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { LONG_AGO, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { CollectError, failureOf, mayHaveMoved } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import { untilAborted, withDeadline } from "../../upstream/deadline.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { NoRoomError } from "../errors/no-room-error.ts";
import { collectableWith } from "../launchpad/choose-sweeps.ts";
import type { CollectedWallet } from "../balances/balances.ts";
import { MAX_LISTED, type Claims, type LastCollect } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import type { End, Flight, Flights } from "./flights.ts";
import type { Collected } from "./settle.ts";
import type { CollectCaller, Request } from "./turns.ts";
import {
  hasNamedCoin,
  reasonOf,
  type LeftFees,
  type LeftReason,
  type ReadUnits,
  type ReadUnitsOf,
  type Attempt,
  type Unit,
} from "../units/units.ts";

/** An outcome, with what every answer says of the account. */
export type CollectAnswer<Outcome = CollectOutcome> = Outcome & {
  /** The newest other collects of the last hour, the newest first. */
  readonly lastCollects: readonly LastCollect[];
  /**
   * What the request's own read saw, and the collect left behind; undefined if nothing was read. Of
   * a failed collect, it holds if nothing was moved.
   */
  readonly left: readonly LeftFees[] | undefined;
};

/** Why a collect has no result. */
export interface Failed {
  readonly kind: "failed";
  readonly error: unknown;
}

/** What the request's own reads and tries have shown so far. */
interface Progress {
  read: ReadUnits | undefined;
  transaction: Attempt["transaction"];
  readonly reasons: Map<string, LeftReason | null>;
  /** The keys of the units for whose flights it may wait. */
  readonly keys: string[];
}

/** What a landed transaction moved for the request. */
type Success = Collected & { readonly kind: "collected" };

export type CollectOutcome =
  | Success
  | {
      readonly kind: "nothing";
      /** What a transaction would move, if that is less than the caller's minimum. */
      readonly belowMinimum?: Lamports | undefined;
      /** How many more lamports of fees the address needs to become rent-exempt, if any. */
      readonly missing?: Lamports | undefined;
    };

/** How many units may fail before they have a transaction. */
const MAX_FAILED_UNITS = 2;
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
  rpc: Pick<Rpc, "readNewestSlot">;
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
  const { rpc, flights, readUnits, claims, metrics, ownCalls, collectTimeoutMs } = needs;

  /** Collects, and records the progress. Throws why it has failed. */
  async function run(
    request: Request,
    signal: AbortSignal,
    progress: Progress,
  ): Promise<CollectOutcome> {
    const { account, coins, caller, askedAt } = request;
    const { keys } = progress;
    /**
     * Counts if nothing else is collected: the result of a transaction without the named coins, or
     * the error of one that may have paid the account.
     */
    let fallback: Success | CollectError | undefined;
    /** The keys of the units whose transactions moved nothing, one for each transaction. */
    const vainUnits: string[] = [];
    let hasLookedAgain = false;
    let hasFollowedPending = false;

    /**
     * Says what follows from the end of a unit's flight: the answer; `next`, why the unit has
     * nothing for the request; or undefined to look again. Throws why the request fails.
     * `newestSlot`: a transaction that landed above it is the request's, whenever it was signed.
     */
    async function judge(
      key: string,
      end: End,
      isMember: boolean,
      newestSlot: number,
    ): Promise<Success | { kind: "next"; error?: CollectError | undefined } | undefined> {
      switch (end.kind) {
        case "landed": {
          // With a false success, callers would count one collect twice.
          const { slot, signedAt = LONG_AGO } = end;
          const isOwn = isMember && end.signedAt !== undefined;
          const isLater = signedAt >= askedAt || slot > newestSlot;
          const collecting = end.collectedBy(account);
          // Also an earlier transaction is the account's last collect.
          const collect = await untilAborted(
            isLater ? collecting : collecting.catch(() => undefined),
            signal,
          );
          if (!collect || !isLater) {
            if (isOwn) vainUnits.push(key);
            return undefined;
          }
          const success = { kind: "collected", ...collect } as const;
          progress.transaction = { key, moved: end.moved };
          if (isOwn || hasNamedCoin(coins, end.moved)) return success;
          fallback = success;
          return undefined;
        }
        case "nothing":
          return { kind: "next", error: end.error };
        case "refused":
          return { kind: "next", error: end.errors.get(caller.addressBlock) };
        case "again":
          return undefined;
        case "failed": {
          const { error } = end;
          if (isMember && !end.isFollowed) throw error;
          if (!mayHaveMoved(error)) return undefined;
          if (error.failure.kind !== "unknown") throw error;
          fallback = error;
          return undefined;
        }
      }
    }

    /** Waits for flights whose transactions are open. Returns undefined to look again. */
    async function waitFor(
      open: readonly Flight[],
      read?: ReadUnits,
    ): Promise<Success | undefined> {
      // A read of a node that is behind still shows the fees of a transaction that has landed.
      const newestSlot = await untilAborted(rpc.readNewestSlot(), signal);
      const leastSlot = read ? Math.max(newestSlot, read.newestSlot) : Infinity;
      for (const { key, end } of open) {
        const next = await judge(key, await untilAborted(end, signal), false, leastSlot);
        if (next?.kind === "collected") return next;
      }
      return undefined;
    }

    /**
     * Works through the units until one has moved something. Returns undefined to look again.
     * `hasLooked`: whether Redis has said that none was open.
     */
    async function workThrough(
      read: ReadUnits,
      hasLooked: boolean,
    ): Promise<CollectOutcome | undefined> {
      const errors: CollectError[] = [];
      progress.reasons.clear();
      const { fees } = read;
      const missing = fees.missingRent - collectableWith(fees.sweeps, fees.vaults);
      const small = read.units.filter(({ gain }) => gain < request.minimum);
      const wasVain = ({ key }: Unit) => Number(vainUnits.includes(key));
      const units = read.units
        .filter((unit) => !small.includes(unit))
        .toSorted((a, b) => wasVain(a) - wasVain(b));
      if (units.length > 0 && vainUnits.length >= MAX_VAIN_TRANSACTIONS)
        throw new CollectError({ kind: "others-first" });
      for (const unit of units) {
        if (errors.length >= MAX_FAILED_UNITS) break;
        const { end, isMember } = await flights.run(unit, read, request, signal);
        const next = await judge(unit.key, end, isMember, hasLooked ? read.newestSlot : Infinity);
        if (next?.kind !== "next") return next;
        const { error } = next;
        if (error) errors.push(error);
        // Unless an empty address would stay below its minimum, others have collected it.
        const whyNothing = missing > 0n ? "BELOW_MINIMUM" : null;
        progress.reasons.set(unit.key, error ? reasonOf(error) : whyNothing);
      }
      const error = errors[0] ?? (small.length > 0 ? undefined : read.error);
      if (error) throw error;
      // Fees may have arrived, while somebody else collected these.
      if (!hasLookedAgain && [...progress.reasons.values()].includes(null)) {
        hasLookedAgain = true;
        return undefined;
      }
      const { pending } = await claims.look(account.address);
      if (pending && !hasFollowedPending) {
        hasFollowedPending = true;
        const flight = flights.followPending(pending, request);
        if (flight) keys.push(flight.key);
        return flight && waitFor([flight], read);
      }
      return {
        kind: "nothing",
        belowMinimum: small.toSorted((a, b) => (a.gain < b.gain ? 1 : -1))[0]?.gain,
        // Only a simulation tells that too little would arrive.
        missing: read.units.length > 0 && missing > 0n ? toLamports(missing) : undefined,
      };
    }

    /** Follows what is open, or works through the units. Returns undefined to look again. */
    async function lookAndCollect(): Promise<CollectOutcome | undefined> {
      // Once: nobody can keep it from its own turn by requests that are refused.
      const mayJoin = coins.length === 0 && !progress.read;
      const looking = Promise.all([
        readUnits(request, caller.visitorBlock).catch(toError),
        ...keys.map((key) => flights.findOpen(key, request, mayJoin)),
      ]);
      const [found, ...flightsOfKeys] = await untilAborted(looking, signal);
      const open = flightsOfKeys.filter((each) => typeof each === "object");
      const read = found instanceof Error ? undefined : found;
      progress.read = read ?? progress.read;
      // What is open may move something, whether or not the account can be read.
      if (open.length > 0) return waitFor(open, read);
      if (found instanceof Error) throw found;
      return workThrough(found, !flightsOfKeys.includes("unknown"));
    }

    try {
      let outcome: CollectOutcome | undefined;
      while (!outcome) outcome = await lookAndCollect();
      if (outcome.kind === "collected" || !fallback) return outcome;
    } catch (error) {
      if (!fallback || mayHaveMoved(error)) throw error;
    }
    if (fallback instanceof CollectError) throw fallback;
    return fallback;
  }

  /** `kind`: if no transaction is open. */
  function lateError({ keys }: Progress, kind: "not-started" | "still-running") {
    const { signature, hasLanded } = flights.openOf(keys) ?? {};
    if (signature === undefined) return new CollectError({ kind, signature });
    return new CollectError({ kind: hasLanded ? "landed-unreadable" : "still-running", signature });
  }

  /** Runs a collect until the caller's deadline. */
  async function runUntilLate(
    request: Request,
    progress: Progress,
  ): Promise<CollectOutcome | Failed> {
    const { caller, askedAt } = request;
    const leftMs = collectTimeoutMs - msSince(askedAt);
    if (leftMs <= 0) return { kind: "failed", error: lateError(progress, "not-started") };
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
        if (failureOf(error) === "others-first") metrics.ended("COLLECT_FAILED");
        return {
          kind: "failed",
          error: signal.aborted ? lateError(progress, "still-running") : error,
        };
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
    ): Promise<CollectAnswer<CollectOutcome | Failed>> {
      const request = { account, coins, minimum, caller, askedAt: startedAt, log };
      const progress: Progress = {
        ...{ read: undefined, transaction: undefined, reasons: new Map() },
        keys: [account.address, ...coins.map(({ sharingConfig }) => sharingConfig.address)],
      };
      const outcome = await runUntilLate(request, progress);
      const { read, reasons, transaction } = progress;
      const otherwise = outcome.kind === "failed" ? reasonOf(outcome.error) : "NO_ROOM";
      const left = read?.leftAfter({ minimum, transaction, reasons, otherwise });
      const own = outcome.kind === "collected" ? outcome.signature : undefined;
      const collects = await claims.readCollects(account.address);
      const others = collects.filter(({ signature }) => signature !== own);
      return { ...outcome, left, lastCollects: others.slice(0, MAX_LISTED) };
    },
  };
}
