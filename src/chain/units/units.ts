import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { WRAPPED_SOL_MINT } from "../launchpad/token-accounts.ts";
import type { UncollectableReason } from "../launchpad/coin-fees.ts";
import type { Balances, CollectedWallet, UncollectedFees } from "../balances/balances.ts";
import {
  chooseSweeps,
  collectableWith,
  distributionsOf,
  type Distribution,
  isPlaceSweep,
  withoutAmm,
  withoutPools,
  type Sweep,
  type Vaults,
  type WaitingFees,
} from "../launchpad/choose-sweeps.ts";
import type { CoinFindings } from "../balances/coin-findings.ts";
import { CollectError } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import { monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";
import type { Composer } from "./composer.ts";
import type { FailedSimulations } from "./failed-simulations.ts";
import type { FailingBlocks } from "./failing-blocks.ts";

/**
 * What one transaction empties. `own`: the account's vaults and the named coins that only it
 * receives. `distribution`: one coin whose fees are shared. A unit has one claim, and at most one
 * transaction in flight.
 */
export interface Unit {
  readonly kind: "own" | "distribution";
  /** The address whose claim the unit needs: the account's, or the coin's sharing config. */
  readonly key: string;
  /** The account that collects. Only its gain counts. */
  readonly account: AccountAddresses;
  /** The account's vaults; empty for a distribution, which pays the address directly. */
  readonly vaults: Vaults;
  readonly sweeps: readonly Sweep[];
  /** The lamports that its transaction is to move for the account. */
  readonly gain: Lamports;
}

/** What a read shows that an account can collect now. */
export interface ReadUnits {
  readonly fees: UncollectedFees;
  /**
   * The units that would move enough: the account's own first, then distributions by what they
   * bring the account. Without what failed a simulation just now, or backs off.
   */
  readonly units: readonly Unit[];
  /** Why something was left out, if so. */
  readonly error: CollectError | undefined;
  /** When the read began. */
  readonly at: MonotonicTime;
  /** Returns what the read saw, and a collect left behind. */
  readonly leftAfter: (attempt: Attempt) => LeftFees[];
}

/** Why a collect left fees behind, each with a sentence for callers; or a coin's reason. */
export const LEFT = {
  BELOW_MINIMUM:
    "A transaction would move less than the collect's `minimum`, the service's minimum, or the rent-exempt minimum of an empty address.",
  BACKING_OFF:
    "The last transaction with these fees failed or moved nothing, so none is sent for a while.",
  NO_ROOM: "The transaction had no room for them, or they need one of their own: collect again.",
  FAILED: "They failed the simulation, or the collect failed.",
} as const;

export type LeftReason = keyof typeof LEFT | UncollectableReason;

/** Fees that a collect has left behind. */
export interface LeftFees {
  /** Undefined for the fees in the account's vaults. */
  readonly mint: string | undefined;
  /** Undefined for a coin that does not exist, or trades in another currency than SOL. */
  readonly amount: Lamports | undefined;
  readonly reason: LeftReason;
}

/** What a collect has tried. */
export interface Attempt {
  readonly minimum: Lamports;
  /** The transaction that has moved something for it. */
  readonly transaction?: { readonly key: string; readonly moved: readonly MovedCoin[] } | undefined;
  /** Why a unit was not collected at its turn, by key. Null: others had collected it. */
  readonly reasons: ReadonlyMap<string, LeftReason | null>;
  /** Why all else was left. */
  readonly otherwise: LeftReason;
}

export type ReadUnitsOf = ReturnType<typeof createReadUnits>;

/** Returns a function that reads what an account can collect. Rejects with an {@link RpcError}. */
export function createReadUnits(needs: {
  balances: Pick<Balances, "getUncollectedFees">;
  composer: Pick<Composer, "choosePart">;
  findings: Pick<CoinFindings, "backsOffMs" | "reasonOf">;
  failedSimulations: Pick<FailedSimulations, "errorOf">;
  failingBlocks: Pick<FailingBlocks, "leftMs">;
}) {
  const { balances, composer, findings, failedSimulations, failingBlocks } = needs;

  /** Returns why a sweep is left out, if it is. */
  function errorOf(sweep: Sweep, blockMs: number): CollectError | undefined {
    const ofCoin = sweep.stage === "SHARED" ? 0 : findings.backsOffMs(sweep.coin.mint);
    const leftMs = Math.max(blockMs, ofCoin);
    if (leftMs > 0) return new CollectError({ kind: "coins-backing-off", leftMs });
    return failedSimulations.errorOf(failureId(sweep), sweep.amount);
  }

  return async (wallet: CollectedWallet, block: string | undefined): Promise<ReadUnits> => {
    const { account } = wallet;
    const at = monotonicNow();
    const fees = await balances.getUncollectedFees(wallet);
    const blockMs = failingBlocks.leftMs(account.address, block);
    const errors = fees.sweeps.map((sweep) => errorOf(sweep, blockMs));
    const sweeps = fees.sweeps.filter((_, i) => !errors[i]);
    const { vaults } = fees;
    const none = { ...vaults, creatorVault: toLamports(0), ammVault: toLamports(0) };
    const ofAmm = failedSimulations.errorOf(account.ammVault, vaults.ammVault);
    const own = ofAmm
      ? { vaults: withoutAmm(vaults), sweeps: withoutPools(sweeps) }
      : { vaults, sweeps };
    const ofVaults = failedSimulations.errorOf(account.address, collectableWith([], own.vaults));
    const distributions = distributionsOf(sweeps)
      .toSorted(byGain)
      .map((sweep) => ({
        ...{ kind: "distribution" as const, key: sweep.coin.sharingConfig.address, account },
        ...{ vaults: none, sweeps: [sweep] },
      }));
    const ownUnit = {
      ...{ kind: "own" as const, key: account.address, account, vaults: own.vaults },
      sweeps: own.sweeps.filter(isPlaceSweep),
    };
    const hasFailed = ofVaults !== undefined && ownUnit.sweeps.length === 0;
    const all = [...(hasFailed ? [] : [ownUnit]), ...distributions];
    const units = all.flatMap((unit): Unit | [] => {
      const part = composer.choosePart(account, unit.sweeps, unit.vaults);
      return part ? { ...unit, gain: collectableWith(part.sweeps, unit.vaults) } : [];
    });
    const error = [...errors, ofAmm, ofVaults].find((each) => each !== undefined);
    const leftAfter = (attempt: Attempt) => leftBy(attempt, { account, fees, units }, blockMs);
    return { fees, units, error, at, leftAfter };
  };

  /** Asks again what has failed: the collect itself may have found out. */
  function leftBy(
    { minimum, transaction, reasons, otherwise }: Attempt,
    { account, fees, units }: Pick<ReadUnits, "fees" | "units"> & { account: AccountAddresses },
    blockMs: number,
  ): LeftFees[] {
    const { vaults, sweeps, coins } = fees;
    const hasAmmFailed = failedSimulations.errorOf(account.ammVault, vaults.ammVault) !== undefined;

    /** Returns undefined if somebody else has collected the unit. */
    function reasonOfUnit(key: string): LeftReason | undefined {
      // A transaction has none of its unit's coins only if these fail together.
      if (key === transaction?.key) return transaction.moved.length > 0 ? "NO_ROOM" : "FAILED";
      const reason = reasons.get(key);
      if (reason !== undefined) return reason ?? undefined;
      const unit = units.find((each) => each.key === key);
      return !unit || unit.gain < minimum ? "BELOW_MINIMUM" : otherwise;
    }

    /** Returns undefined if the sweep's fees are not left. */
    function reasonOfSweep(sweep: Sweep): LeftReason | undefined {
      const { coin, stage } = sweep;
      const isMoved = ({ mint, stage: place = stage }: MovedCoin) =>
        mint === coin.mint && place === stage;
      if (transaction?.moved.some(isMoved)) return undefined;
      const error = errorOf(sweep, blockMs);
      if (error?.failure.kind === "coins-backing-off") return "BACKING_OFF";
      if (sweep.stage === "SHARED") {
        const reason = findings.reasonOf(coin.mint, sweep.distributable);
        if (reason) return reason;
      }
      if (error || (stage === "POOL" && hasAmmFailed)) return "FAILED";
      return reasonOfUnit(stage === "SHARED" ? coin.sharingConfig.address : account.address);
    }

    function* findAll(): Generator<Omit<LeftFees, "amount"> & { amount: bigint | undefined }> {
      const inVaults = collectableWith([], vaults);
      const inOthers = hasAmmFailed ? collectableWith([], withoutAmm(vaults)) : inVaults;
      const haveFailed = failedSimulations.errorOf(account.address, inOthers) !== undefined;
      const reason = haveFailed ? "FAILED" : reasonOfUnit(account.address);
      if (reason && transaction?.key !== account.address)
        yield { mint: undefined, amount: inOthers, reason };
      if (hasAmmFailed) yield { mint: undefined, amount: inVaults - inOthers, reason: "FAILED" };

      const isCollectable = (sweep: Sweep) =>
        coins.some((each) => each.sweep === sweep && each.reason === null);
      for (const { mint, amount, quoteMint, reason, sweep } of coins) {
        const inSol = quoteMint === WRAPPED_SOL_MINT ? (amount ?? undefined) : undefined;
        // Collects try what they can sweep, whatever a lookup says.
        const isTried = sweep && sweeps.includes(sweep) && !isCollectable(sweep);
        if (reason && !(isTried && !reasonOfSweep(sweep))) yield { mint, amount: inSol, reason };
      }
      for (const sweep of sweeps.filter(isCollectable)) {
        const reason = reasonOfSweep(sweep);
        if (reason) yield { mint: sweep.coin.mint, amount: sweep.amount, reason };
      }
    }

    const sums = new Map<string, LeftFees>();
    for (const { mint, amount, reason } of findAll()) {
      if (reason === "NOTHING_WAITING" || amount === 0n) continue;
      const id = `${mint} ${reason}`;
      const sum = (sums.get(id)?.amount ?? 0n) + (amount ?? 0n);
      sums.set(id, { mint, amount: amount === undefined ? undefined : toLamports(sum), reason });
    }
    return [...sums.values()];
  }
}

/** Orders distributions by gain, and equal ones by key: shareholders then meet at the same one. */
function byGain(a: Distribution, b: Distribution): number {
  if (a.amount !== b.amount) return a.amount < b.amount ? 1 : -1;
  return a.coin.sharingConfig.address < b.coin.sharingConfig.address ? -1 : 1;
}

/** The id of a sweep in {@link FailedSimulations}. */
export const failureId = ({ coin, stage }: Sweep): string => `${coin.mint} ${stage}`;

/** A coin whose fees a transaction moves; without `stage`, from all places. */
export type MovedCoin = Pick<Partial<Sweep>, "stage"> & { readonly mint: string };

interface RemainingNeeds {
  /** The most rent that one collect may pay. */
  readonly maxRentLamports: Lamports;
  readonly failedSimulations: Pick<FailedSimulations, "errorOf">;
}

/**
 * Returns what waits in `units` after a transaction for the unit `key`, and what another collect
 * moves: coins that had no room, the other units, and the vaults if they are one of these. Leaves
 * out coins whose simulation failed just now.
 */
export function remainingIn(
  units: readonly Unit[],
  { key, moved }: { key: string; moved: readonly MovedCoin[] },
  { maxRentLamports, failedSimulations }: RemainingNeeds,
): WaitingFees[] {
  return units.flatMap(({ kind, key: other, vaults, sweeps }): WaitingFees[] => {
    if (kind === "distribution" && other === key) return [];
    const chosenSweeps = chooseSweeps(sweeps, vaults, maxRentLamports);
    const otherSweeps = chosenSweeps.filter(
      (sweep) =>
        !failedSimulations.errorOf(failureId(sweep), sweep.amount) &&
        !moved.some(
          ({ mint, stage = sweep.stage }) => mint === sweep.coin.mint && stage === sweep.stage,
        ),
    );
    const ofCoins = otherSweeps.map(({ coin, amount }) => ({ mint: coin.mint, amount }));
    const ofVaults = other === key ? toLamports(0) : collectableWith([], vaults);
    return ofVaults > 0n ? [{ mint: undefined, amount: ofVaults }, ...ofCoins] : ofCoins;
  });
}

/** Whether a transaction has a coin that a request names, or the request names none. */
export function hasNamedCoin(
  namedCoins: readonly CoinAddresses[],
  movedCoins: readonly MovedCoin[],
): boolean {
  return (
    namedCoins.length === 0 ||
    namedCoins.some(({ mint }) => movedCoins.some((each) => each.mint === mint))
  );
}
