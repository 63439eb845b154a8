import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { WRAPPED_SOL_MINT } from "../launchpad/token-accounts.ts";
import type { UncollectableReason } from "../launchpad/coin-fees.ts";
import type { Balances, CollectedWallet, UncollectedFees } from "../balances/balances.ts";
import {
  collectableWith,
  distributionsOf,
  type Distribution,
  isPlaceSweep,
  withoutAmm,
  withoutPools,
  type Sweep,
  type Vaults,
} from "../launchpad/choose-sweeps.ts";
import { blockKey, type Failures } from "../balances/failures.ts";
import { CollectError, failureOf } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import type { Composer } from "./composer.ts";
import type { Rpc } from "../rpc/rpc-client.ts";

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
  /** The newest slot that any endpoint had shown by the end of the read. */
  readonly newestSlot: number;
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

/** Why fees were left whose collect failed with this error. */
export const reasonOf = (error: unknown): LeftReason =>
  failureOf(error) === "backing-off" ? "BACKING_OFF" : "FAILED";

export type ReadUnitsOf = ReturnType<typeof createReadUnits>;

/** Returns a function that reads what an account can collect. Rejects with an {@link RpcError}. */
export function createReadUnits(needs: {
  rpc: Pick<Rpc, "newestSlot">;
  balances: Pick<Balances, "getUncollectedFees">;
  composer: Pick<Composer, "choosePart">;
  failures: Pick<Failures, "leftMs" | "errorOf" | "reasonOf">;
}) {
  const { rpc, balances, composer, failures } = needs;

  /** Returns why any of these is not tried, if so. */
  function errorOf(...keys: string[]): CollectError | undefined {
    const leftMs = Math.max(...keys.map(failures.leftMs));
    if (leftMs === 0) return undefined;
    const [error] = keys.flatMap((key) => failures.errorOf(key) ?? []);
    return error ?? new CollectError({ kind: "backing-off", leftMs });
  }

  return async (wallet: CollectedWallet, block: string | undefined): Promise<ReadUnits> => {
    const { account } = wallet;
    const fees = await balances.getUncollectedFees(wallet);
    const ofBlock = blockKey(account.address, block);
    const errors = fees.sweeps.map((sweep) => errorOf(failureKey(sweep), ofBlock));
    const sweeps = fees.sweeps.filter((_, i) => !errors[i]);
    const { vaults } = fees;
    const none = { ...vaults, creatorVault: toLamports(0), ammVault: toLamports(0) };
    const ofAmm = errorOf(account.ammVault);
    const own = ofAmm
      ? { vaults: withoutAmm(vaults), sweeps: withoutPools(sweeps) }
      : { vaults, sweeps };
    const ofVaults = errorOf(account.address);
    const distributions = distributionsOf(sweeps)
      .toSorted(byGain)
      .map((sweep) => ({
        kind: "distribution" as const,
        key: sweep.coin.sharingConfig.address,
        vaults: none,
        sweeps: [sweep],
      }));
    const ownUnit = {
      kind: "own" as const,
      key: account.address,
      vaults: own.vaults,
      sweeps: own.sweeps.filter(isPlaceSweep),
    };
    const filled = [ownUnit, ...distributions].flatMap((unit): Unit | [] => {
      const part = composer.choosePart(account, unit.sweeps, unit.vaults);
      return part ? { ...unit, account, gain: part.amount } : [];
    });
    const units = filled.filter(({ kind }) => kind !== "own" || !ofVaults);
    const ofOwn = units.length < filled.length ? ofVaults : undefined;
    const error = [...errors, ofAmm, ofOwn].find((each) => each !== undefined);

    /** Asks again what has failed: the collect itself may have found out. */
    function leftAfter({ minimum, transaction, reasons, otherwise }: Attempt): LeftFees[] {
      const hasAmmFailed = failures.leftMs(account.ammVault) > 0;

      function reasonOfFailure(...keys: string[]): LeftReason | undefined {
        const error = errorOf(...keys);
        return error && reasonOf(error);
      }

      /** Returns undefined if somebody else has collected the unit. */
      function reasonOfUnit(key: string): LeftReason | undefined {
        if (key === transaction?.key) return "NO_ROOM";
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
        const failure = reasonOfFailure(failureKey(sweep), ofBlock);
        if (failure === "BACKING_OFF") return failure;
        if (sweep.stage === "SHARED") {
          const reason = failures.reasonOf(coin.mint, sweep.distributable);
          if (reason) return reason;
        }
        if (failure || (stage === "POOL" && hasAmmFailed)) return "FAILED";
        return reasonOfUnit(stage === "SHARED" ? coin.sharingConfig.address : account.address);
      }

      const sums = new Map<string, LeftFees>();
      function add(
        mint: string | undefined,
        amount: bigint | undefined,
        reason: LeftReason | null | undefined,
      ): void {
        if (!reason || reason === "NOTHING_WAITING" || amount === 0n) return;
        const id = `${mint} ${reason}`;
        const sum = (sums.get(id)?.amount ?? 0n) + (amount ?? 0n);
        sums.set(id, { mint, amount: amount === undefined ? undefined : toLamports(sum), reason });
      }

      const inVaults = collectableWith([], vaults);
      const inOthers = hasAmmFailed ? collectableWith([], withoutAmm(vaults)) : inVaults;
      if (transaction?.key !== account.address)
        add(undefined, inOthers, reasonOfFailure(account.address) ?? reasonOfUnit(account.address));
      if (hasAmmFailed) add(undefined, inVaults - inOthers, "FAILED");

      const isCollectable = (sweep: Sweep) =>
        fees.coins.some((each) => each.sweep === sweep && each.reason === null);
      for (const { mint, amount, quoteMint, reason, sweep } of fees.coins) {
        const inSol = quoteMint === WRAPPED_SOL_MINT ? (amount ?? undefined) : undefined;
        // Collects try what they can sweep, whatever a lookup says.
        const isTried = sweep && fees.sweeps.includes(sweep) && !isCollectable(sweep);
        if (!isTried || reasonOfSweep(sweep)) add(mint, inSol, reason);
      }
      for (const sweep of fees.sweeps.filter(isCollectable))
        add(sweep.coin.mint, sweep.amount, reasonOfSweep(sweep));
      return [...sums.values()];
    }

    return { fees, units, error, newestSlot: rpc.newestSlot(), leftAfter };
  };
}

/** Orders distributions by gain, and equal ones by key: shareholders then meet at the same one. */
function byGain(a: Distribution, b: Distribution): number {
  if (a.amount !== b.amount) return a.amount < b.amount ? 1 : -1;
  return a.coin.sharingConfig.address < b.coin.sharingConfig.address ? -1 : 1;
}

/** The key of a sweep in {@link Failures}: a distribution's is its unit's. */
export const failureKey = ({ coin, stage }: Sweep): string =>
  stage === "SHARED" ? coin.sharingConfig.address : coin.mint;

/** A coin whose fees a transaction moves; without `stage`, from all places. */
export type MovedCoin = Pick<Partial<Sweep>, "stage"> & { readonly mint: string };

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
