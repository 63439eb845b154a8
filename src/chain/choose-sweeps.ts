import { saturatingSubtract, toLamports, type Lamports } from "./lamports.ts";
import type { CoinAddresses } from "./launchpad/coin-addresses.ts";
import type { Stage } from "./launchpad/fee-accounts.ts";
import type { Shareholder } from "./launchpad/sharing-config.ts";
import { rentMinimumOf, type Rent } from "./rent.ts";
import type { Account } from "./rpc/rpc-results.ts";
import { readWrappedSol, TOKEN_ACCOUNT_BYTES } from "./token-accounts.ts";

/** What the vaults of an account, or of a sharing config, hold. */
export interface Vaults {
  /** All lamports of the creator vault. */
  readonly creatorVault: Lamports;
  /** The wrapped SOL in the AMM's vault. */
  readonly ammVault: Lamports;
  /**
   * The rent that the first sweep of a curve (to the creator vault) or pool (to the AMM's vault) costs its payer: above
   * 0 if the vault is missing or below its minimum.
   */
  readonly missingRent: Readonly<Record<Stage, Lamports>>;
  /** The rent-exempt minimum of the creator vault, which stays there. */
  readonly rentMinimum: Lamports;
  readonly rent: Rent;
  /** The least that the AMM moves out of its vault. */
  readonly ammMinimum: Lamports;
}

/** Less is not worth the AMM's transfer, which makes transactions larger: anyone can send a few lamports. */
const AMM_MINIMUM = toLamports(5_000);

/** Decodes the vaults of an account, or of a sharing config. */
export function toVaults(
  creatorVault: Account | undefined,
  ammVault: Account | undefined,
  rent: Rent,
): Vaults {
  const rentMinimum = rentMinimumOf(rent, 0);
  const lamports = creatorVault?.lamports ?? toLamports(0);
  const wrapped = readWrappedSol(ammVault);
  const ofToken = saturatingSubtract(
    rentMinimumOf(rent, TOKEN_ACCOUNT_BYTES),
    ammVault?.lamports ?? toLamports(0),
  );
  return {
    creatorVault: lamports,
    ammVault: wrapped ?? toLamports(0),
    missingRent: {
      CURVE: saturatingSubtract(rentMinimum, lamports),
      POOL: wrapped === undefined ? ofToken : toLamports(0),
    },
    rentMinimum,
    rent,
    ammMinimum: AMM_MINIMUM,
  };
}

/** A sweep of a coin's curve or pool. It moves the fees that wait there to the account's vaults. */
export interface PlaceSweep {
  readonly coin: CoinAddresses;
  readonly stage: Stage;
  readonly amount: Lamports;
  /** The rent that the payer pays to grow an account of an older, shorter layout. */
  readonly growthRent: Lamports;
}

/**
 * Sweeps of a shared coin's curve and pool, then a distribution of the fees to all shareholders. `amount`: what the
 * account receives; the collect's cost is weighed against it only. `growthRent`: also for missing vaults.
 */
export interface Distribution extends Omit<PlaceSweep, "stage"> {
  readonly stage: "SHARED";
  /** What all shareholders together receive, plus the remainder of rounding. */
  readonly distributable: Lamports;
  /** In the order in which the distribution names them. */
  readonly shareholders: readonly Shareholder[];
  /** Whether the curve is swept. It is swept even if no fees wait there: a trade can add some at any moment. */
  readonly withCurve: boolean;
  /** Whether the coin's pool is swept, and the sharing config's AMM vault emptied. */
  readonly withPool: boolean;
  /** If the pool is swept: the same distribution without the pool, which is smaller and may need less rent. */
  readonly withoutPool?: Distribution | undefined;
}

export type Sweep = PlaceSweep | Distribution;

/** A sweep that a collect does, with all rent that its payer pays. */
export type ChosenSweep = Sweep & { readonly rent: Lamports };

/** Fees that wait on a coin. */
export interface WaitingFees {
  readonly mint: string;
  readonly amount: Lamports;
}

/** A sweep moves at least this many times its rent. */
const MIN_AMOUNT_PER_RENT = 50n;

/** Whether the service pays `rent` for a sweep of `amount`: at most 2% of it. */
export function isRentAcceptable(rent: bigint, amount: bigint): boolean {
  return rent * MIN_AMOUNT_PER_RENT <= amount;
}

/** Returns the rent to add `bytes` to an account. Rent is linear in the size. */
export function growthRentOf(bytes: number, { rent, rentMinimum }: Vaults): Lamports {
  return saturatingSubtract(rentMinimumOf(rent, bytes), rentMinimum);
}

/**
 * Chooses the sweeps of a collect, the largest first, as long as they `fit` together. Balances use this function too,
 * so that they show what a collect would move. A sweep's rent must be acceptable and at most `maxRentLamports`; the
 * first sweep to a vault pays for that vault. Omits sweeps to the AMM's vault if it would stay below `ammMinimum`.
 */
export function chooseSweeps(
  sweeps: readonly Sweep[],
  vaults: Vaults,
  maxRentLamports: Lamports,
  fit: (chosen: readonly ChosenSweep[]) => boolean = () => true,
): ChosenSweep[] {
  if (sweeps.length === 0) return [];
  const chosen: ChosenSweep[] = [];
  const missingRent = { ...vaults.missingRent };

  function choose(sweep: Sweep): boolean {
    const { stage } = sweep;
    const rent = rentWith(missingRent, sweep);
    const candidate = { ...sweep, rent };
    if (rent > maxRentLamports || !isRentAcceptable(rent, sweep.amount) || !fit([...chosen, candidate]))
      return false;
    chosen.push(candidate);
    if (stage !== "SHARED") missingRent[stage] = toLamports(0);
    return true;
  }
  let left = sweeps.toSorted((a, b) => (a.amount < b.amount ? 1 : a.amount > b.amount ? -1 : 0));
  // Try again: once a sweep has paid for a vault, a sweep that was too expensive before may be acceptable.
  for (let before = Infinity; left.length < before;) {
    before = left.length;
    left = left.filter(
      (sweep) =>
        !choose(sweep) && !(sweep.stage === "SHARED" && sweep.withoutPool && choose(sweep.withoutPool)),
    );
  }

  if (amountOf("POOL", chosen) === 0n || inAmm(chosen, vaults) > 0n) return chosen;
  return chooseSweeps(withoutPools(sweeps), vaults, maxRentLamports, fit);
}

/** Returns the lamports that the AMM moves to the creator vault after the sweeps; 0 below the AMM's minimum. */
export function inAmm(sweeps: readonly Sweep[], { ammVault, ammMinimum }: Vaults): Lamports {
  const amount = ammVault + amountOf("POOL", sweeps);
  return toLamports(amount >= ammMinimum ? amount : 0n);
}

/** Returns the lamports that a collect with these sweeps moves to the address. */
export function collectableWith(sweeps: readonly Sweep[], vaults: Vaults): Lamports {
  const shared = sweeps.reduce((sum, { stage, amount }) => (stage === "SHARED" ? sum + amount : sum), 0n);
  return toLamports(inVaultsWith(sweeps, vaults) + shared);
}

/** Returns the part of {@link collectableWith} that comes from the account's own vaults. */
export function inVaultsWith(sweeps: readonly Sweep[], vaults: Vaults): Lamports {
  const swept = amountOf("CURVE", sweeps);
  const paid = swept > 0n ? vaults.missingRent.CURVE : 0n;
  return saturatingSubtract(
    toLamports(vaults.creatorVault + paid + swept + inAmm(sweeps, vaults)),
    vaults.rentMinimum,
  );
}

/** Returns the rent that the payer of the sweeps pays. */
export function rentOf(sweeps: readonly ChosenSweep[]): Lamports {
  return toLamports(sweeps.reduce((sum, { rent }) => sum + rent, 0n));
}

/** Returns all rent that a sweep's payer pays if these vaults lack rent. */
export function rentWith(missingRent: Vaults["missingRent"], { stage, growthRent }: Sweep): Lamports {
  return toLamports(growthRent + (stage === "SHARED" ? 0n : missingRent[stage]));
}

export function sweepsOf<S extends Sweep>(stage: Stage, sweeps: readonly S[]): (S & PlaceSweep)[] {
  return sweeps.filter((sweep): sweep is S & PlaceSweep => sweep.stage === stage);
}

/** Returns the sweeps that work without the AMM's transfer. */
export function withoutPools<S extends Sweep>(sweeps: readonly S[]): S[] {
  return sweeps.filter(({ stage }) => stage !== "POOL");
}

export function distributionsOf<S extends Sweep>(sweeps: readonly S[]): (S & Distribution)[] {
  return sweeps.filter((sweep): sweep is S & Distribution => sweep.stage === "SHARED");
}

function amountOf(stage: Stage, sweeps: readonly Sweep[]): bigint {
  return sweepsOf(stage, sweeps).reduce((sum, { amount }) => sum + amount, 0n);
}
