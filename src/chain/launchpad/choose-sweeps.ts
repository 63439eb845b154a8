import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import type { CoinAddresses } from "./coin-addresses.ts";
import type { Stage } from "./fee-accounts.ts";
import type { Shareholder } from "./sharing-config.ts";
import { rentMinimumOf, type Rent } from "../primitives/rent.ts";
import type { Account } from "../rpc/rpc-results.ts";
import { isTokenAccount, TOKEN_ACCOUNT_BYTES } from "./token-accounts.ts";

/** The most rent that a collect pays for sweeps: enough for two token accounts. */
export const MAX_RENT_LAMPORTS = toLamports(3_000_000);

/** The vaults of an account, or of a sharing config. */
export interface Vaults {
  /** All lamports of the creator vault. */
  readonly creatorVault: Lamports;
  /**
   * The lamports in the AMM's vault above its rent-exempt minimum, which the AMM's transfer moves:
   * the wrapped SOL, and what older, higher rent has left. Negative if rent has risen.
   */
  readonly ammVault: bigint;
  /**
   * What the first sweep to a vault pays: `CURVE` for the creator vault, `POOL` for the AMM's
   * vault. The platform pays a creator vault that is short of its minimum the whole minimum.
   */
  readonly missingRent: Readonly<Record<Stage, Lamports>>;
  /** The creator vault's rent-exempt minimum, which a collect leaves in the vault. */
  readonly rentMinimum: Lamports;
  readonly rent: Rent;
}

/**
 * Smaller amounts, which anyone can send, are not worth the AMM's transfer: it makes transactions
 * larger.
 */
export const AMM_MINIMUM = 5_000n;

/** Decodes the vaults of an account, or of a sharing config. */
export function toVaults(
  creatorVault: Account | undefined,
  ammVault: Account | undefined,
  rent: Rent,
): Vaults {
  const rentMinimum = rentMinimumOf(rent, 0);
  const lamports = creatorVault?.lamports ?? toLamports(0);
  const inAmmVault = ammVault?.lamports ?? toLamports(0);
  const ofToken = rentMinimumOf(rent, TOKEN_ACCOUNT_BYTES);
  const hasAmmVault = isTokenAccount(ammVault);
  return {
    creatorVault: lamports,
    ammVault: hasAmmVault ? inAmmVault - ofToken : 0n,
    missingRent: {
      CURVE: lamports < rentMinimum ? rentMinimum : toLamports(0),
      POOL: hasAmmVault ? toLamports(0) : saturatingSubtract(ofToken, inAmmVault),
    },
    rentMinimum,
    rent,
  };
}

/** Moves the waiting fees of a coin's curve or pool to the account's vaults. */
export interface PlaceSweep {
  readonly coin: CoinAddresses;
  readonly stage: Stage;
  readonly amount: Lamports;
  /** The rent that the payer pays for the curve or pool itself: see `FeeAccount.topUp`. */
  readonly topUp: Lamports;
}

/**
 * Sweeps a shared coin's curve and pool, then distributes the fees to all shareholders. `amount`:
 * what this account receives, which alone must justify the collect's cost. `topUp`: includes the
 * rent of the sharing config's vaults.
 */
export interface Distribution extends Omit<PlaceSweep, "stage"> {
  readonly stage: "SHARED";
  /** The sharing config's vaults. */
  readonly vaults: Vaults;
  /** What all shareholders together receive, plus the remainder of rounding. */
  readonly distributable: Lamports;
  /** In the sharing config's order. */
  readonly shareholders: readonly Shareholder[];
  /**
   * The sweeps of the curve and of the pool, in order; the AMM's transfer follows the pool's. The
   * curve is swept before the coin migrates, because a trade can add fees at any moment, or if fees
   * wait on it.
   */
  readonly places: readonly PlaceSweep[];
}

export type Sweep = PlaceSweep | Distribution;

/** A sweep that a collect includes, and all the rent that the sweep costs. */
export type ChosenSweep = Sweep & { readonly rent: Lamports };

/** A sweep must move at least this many times its rent. */
const MIN_AMOUNT_PER_RENT = 50n;

/**
 * Whether the service pays `rent` for a sweep of `amount`: at most 2% of the amount, and at most
 * `maxRentLamports`.
 */
export function isRentAcceptable(rent: bigint, amount: bigint, maxRentLamports: Lamports): boolean {
  return rent <= maxRentLamports && rent * MIN_AMOUNT_PER_RENT <= amount;
}

/**
 * Chooses the sweeps of a collect, the largest first, as long as they `fit` together. Balances also
 * use this function, to show what a collect would move. A sweep's rent must be acceptable and at
 * most `maxRentLamports`; the first sweep to a vault pays for that vault. Omits sweeps to the AMM's
 * vault if the AMM would not empty it.
 */
export function chooseSweeps(
  sweeps: readonly Sweep[],
  vaults: Vaults,
  maxRentLamports: Lamports,
  fit: (chosen: readonly ChosenSweep[]) => boolean = () => true,
): ChosenSweep[] {
  if (sweeps.length === 0) return [];
  const chosenSweeps: ChosenSweep[] = [];
  const missingRent = { ...vaults.missingRent };
  const largestFirst = sweeps.toSorted((a, b) => Number(b.amount - a.amount));
  for (const sweep of largestFirst) {
    const rent = rentWith(missingRent, sweep);
    const chosen = { ...sweep, rent };
    if (!isRentAcceptable(rent, sweep.amount, maxRentLamports) || !fit([...chosenSweeps, chosen]))
      continue;
    chosenSweeps.push(chosen);
    if (sweep.stage !== "SHARED") missingRent[sweep.stage] = toLamports(0);
  }
  if (amountOf("POOL", chosenSweeps) === 0n || inAmm(chosenSweeps, vaults) > 0n)
    return chosenSweeps;
  return chooseSweeps(withoutPools(sweeps), vaults, maxRentLamports, fit);
}

/**
 * Returns the lamports that the AMM moves to the creator vault after the sweeps. 0 for less than
 * {@link AMM_MINIMUM}, or if the AMM skips the transfer, because the creator vault would stay below
 * its minimum.
 */
export function inAmm(sweeps: readonly Sweep[], vaults: Vaults): Lamports {
  const amount = vaults.ammVault + amountOf("POOL", sweeps);
  const isSkipped = inCreatorVaultWith(sweeps, vaults) + amount < vaults.rentMinimum;
  return toLamports(amount < AMM_MINIMUM || isSkipped ? 0n : amount);
}

/** Returns the lamports of the creator vault after the curves' sweeps, rent included. */
function inCreatorVaultWith(sweeps: readonly Sweep[], vaults: Vaults): bigint {
  const sweptAmount = amountOf("CURVE", sweeps);
  return vaults.creatorVault + sweptAmount + (sweptAmount > 0n ? vaults.missingRent.CURVE : 0n);
}

/** Returns the lamports that a collect with these sweeps moves to the address. */
export function collectableWith(sweeps: readonly Sweep[], vaults: Vaults): Lamports {
  const sharedAmount = sweeps.reduce(
    (sum, { stage, amount }) => (stage === "SHARED" ? sum + amount : sum),
    0n,
  );
  return toLamports(inVaultsWith(sweeps, vaults) + sharedAmount);
}

/** Returns the part of {@link collectableWith} that comes from the account's own vaults. */
export function inVaultsWith(sweeps: readonly Sweep[], vaults: Vaults): Lamports {
  return saturatingSubtract(
    toLamports(inCreatorVaultWith(sweeps, vaults) + inAmm(sweeps, vaults)),
    vaults.rentMinimum,
  );
}

/** Returns the rent that all these sweeps cost together. */
export function rentOf(sweeps: readonly ChosenSweep[]): Lamports {
  return toLamports(sweeps.reduce((sum, { rent }) => sum + rent, 0n));
}

/**
 * Returns the rent that a sweep costs: for the curve or pool, and for its vault if `missingRent` is
 * above 0.
 */
export function rentWith(missingRent: Vaults["missingRent"], { stage, topUp }: Sweep): Lamports {
  return toLamports(topUp + (stage === "SHARED" ? 0n : missingRent[stage]));
}

export function sweepsOf<S extends Sweep>(stage: Stage, sweeps: readonly S[]): (S & PlaceSweep)[] {
  return sweeps.filter((sweep): sweep is S & PlaceSweep => sweep.stage === stage);
}

export const withoutAmm = (vaults: Vaults): Vaults => ({ ...vaults, ammVault: 0n });

/** Returns the sweeps that add nothing to the account's AMM vault. */
export function withoutPools<S extends Sweep>(sweeps: readonly S[]): S[] {
  return sweeps.filter(({ stage }) => stage !== "POOL");
}

export const isPlaceSweep = (sweep: Sweep): sweep is PlaceSweep => sweep.stage !== "SHARED";

/** Whether a distribution sweeps the coin's pool, and empties the sharing config's AMM vault. */
export const isWithPool = ({ places }: Distribution): boolean =>
  sweepsOf("POOL", places).length > 0;

export function distributionsOf<S extends Sweep>(sweeps: readonly S[]): (S & Distribution)[] {
  return sweeps.filter((sweep): sweep is S & Distribution => sweep.stage === "SHARED");
}

function amountOf(stage: Stage, sweeps: readonly Sweep[]): bigint {
  return sweepsOf(stage, sweeps).reduce((sum, { amount }) => sum + amount, 0n);
}
