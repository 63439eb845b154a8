import { PublicKey } from "@solana/web3.js";
import type { AccountAddresses } from "../../chain/launchpad/account-addresses.ts";
import { DerivedCreator } from "../../chain/launchpad/vaults.ts";
import { TOKEN_ACCOUNT_BYTES } from "../../chain/launchpad/token-accounts.ts";
import type { Chain } from "./chain.ts";
import { toTokenAccount, WRAPPED_SOL } from "./token-accounts.ts";

/** Creates an AMM vault that holds `lamports` of wrapped SOL, without a transaction. */
export function setAmmVault(chain: Chain, addresses: AccountAddresses, lamports: bigint): void {
  const reserve = chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES);
  const authority = new PublicKey(addresses.ammVaultAuthority);
  chain.setAccount(addresses.ammVault, toTokenAccount(WRAPPED_SOL, authority, lamports, reserve));
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
