import { PublicKey } from "@solana/web3.js";
import type { AccountAddresses } from "../../chain/addresses.ts";
import { ammVaultAuthorityOf, creatorVaultOf } from "../../chain/launchpad/vaults.ts";
import type { Chain } from "./chain.ts";
import { toWrappedSolAccount, TOKEN_ACCOUNT_BYTES, wrapSol } from "./wrapped-sol.ts";

/** The ids of the launch platform's programs. */
export interface LaunchpadPrograms {
  readonly launchpadProgramId: string;
  readonly ammProgramId: string;
}

/** Puts wrapped SOL into an AMM vault that does not exist yet, out of nothing, without a transaction. */
export function setAmmVault(chain: Chain, vault: AccountAddresses, lamports: bigint): void {
  const reserve = chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES);
  const authority = new PublicKey(vault.ammVaultAuthority);
  chain.setAccount(vault.ammVault, toWrappedSolAccount(authority, lamports, reserve));
}

/**
 * What trading in a creator's tokens does while they are on the bonding curve: pays `lamports` into the
 * launch platform's vault of that creator, on top of the rent-exempt minimum, without which the vault could
 * not exist. Returns the signature.
 */
export function addCreatorFees(
  chain: Chain,
  { launchpadProgramId }: LaunchpadPrograms,
  creator: string,
  lamports: bigint,
): string {
  const vault = creatorVaultOf(new PublicKey(creator), new PublicKey(launchpadProgramId)).toBase58();
  const minimum = chain.balance(vault) === 0n ? chain.rentExemptMinimum(0) : 0n;
  return chain.transfer(vault, minimum + lamports);
}

/** What it does when they have left it: pays into the AMM's vault, as wrapped SOL. Returns the signature. */
export function addAmmCreatorFees(
  chain: Chain,
  { ammProgramId }: LaunchpadPrograms,
  creator: string,
  lamports: bigint,
): string {
  const authority = ammVaultAuthorityOf(new PublicKey(creator), new PublicKey(ammProgramId));
  return chain.sendFromFaucet((faucet) => wrapSol(faucet, authority, lamports));
}
