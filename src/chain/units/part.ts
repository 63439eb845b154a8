import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import {
  distributionsOf,
  isWithPool,
  type ChosenSweep,
  type Sweep,
  type Vaults,
} from "../launchpad/choose-sweeps.ts";
import { PLACES } from "../launchpad/fee-accounts.ts";
import type { Creator } from "../launchpad/vaults.ts";
import type { Lamports } from "../primitives/lamports.ts";

/**
 * What a transaction does for one account: distributions, sweeps, the AMM's transfer, then the
 * collect.
 */
export interface CollectPart {
  readonly account: AccountAddresses;
  /** The account's vaults, as read. */
  readonly vaults: Vaults;
  readonly sweeps: readonly ChosenSweep[];
  readonly withAmm: boolean;
  /** False if there are only distributions, which pay the address directly. */
  readonly withVaults: boolean;
}

/** A part for fees that were read. */
export interface PlannedPart extends CollectPart {
  /** The lamports that it is to move for the account. */
  readonly amount: Lamports;
}

/** Whose vaults a part empties: a distribution's are the coin's. */
export const creatorOf = ({ account, sweeps }: CollectPart): Creator =>
  distributionsOf(sweeps)[0]?.coin.sharingConfig ?? account;

/**
 * Returns the written accounts that decide a part's price: the address, vaults, curves and pools.
 * Leaves out other shareholders: one could raise the price by choosing an address that many
 * transactions write to.
 */
export function writableOf({ account, withAmm, withVaults, sweeps }: CollectPart): string[] {
  return [
    account.address,
    ...(withVaults ? [account.creatorVault] : []),
    ...(withAmm ? [account.ammVault] : []),
    ...sweeps.flatMap(writtenBy),
  ];
}

/**
 * Returns the curve or pool that a sweep writes to. For a distribution, adds the sharing config's
 * vaults.
 */
function writtenBy(sweep: Sweep): string[] {
  const { coin, stage } = sweep;
  if (stage !== "SHARED") return [coin[PLACES[stage].account]];
  const { curve, pool, sharingConfig } = coin;
  return [
    curve,
    sharingConfig.creatorVault,
    ...(isWithPool(sweep) ? [pool, sharingConfig.ammVault] : []),
  ];
}
