import type { AccountAddresses } from "../../chain/launchpad/account-addresses.ts";
import { DerivedCreator } from "../../chain/launchpad/vaults.ts";
import type { Chain } from "./chain.ts";
import { setWrappedSol } from "./accounts.ts";

/** Creates an AMM vault that holds `lamports` of wrapped SOL, without a transaction. */
export function setAmmVault(
  chain: Chain,
  { ammVaultAuthority }: AccountAddresses,
  lamports: bigint,
): void {
  setWrappedSol(chain, ammVaultAuthority, lamports);
}

/**
 * Pays `lamports` into the creator vault, as trades on the bonding curve do; returns the signature.
 * The first payment adds the rent-exempt minimum, without which the vault could not exist.
 */
export function addCreatorFees(chain: Chain, creator: string, lamports: bigint): string {
  const vault = new DerivedCreator(creator).creatorVault;
  const minimum = chain.balance(vault) === 0n ? chain.rentExemptMinimum(0) : 0n;
  return chain.transfer(vault, minimum + lamports);
}
