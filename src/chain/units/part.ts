import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { distributionsOf, type ChosenSweep, type Vaults } from "../launchpad/choose-sweeps.ts";
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
