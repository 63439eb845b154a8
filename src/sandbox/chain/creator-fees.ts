import { PublicKey } from "@solana/web3.js";
import type { AccountAddresses } from "../../chain/addresses.ts";
import { DerivedCreator } from "../../chain/launchpad/vaults.ts";
import { TOKEN_ACCOUNT_BYTES, WRAPPED_SOL_MINT } from "../../chain/token-accounts.ts";
import type { Chain } from "./chain.ts";
import { depositTokens, toTokenAccount } from "./token-accounts.ts";

/** The ids of the launch platform's programs, in base58. */
export interface LaunchpadPrograms {
  readonly launchpadProgramId: string;
  readonly ammProgramId: string;
}

/** Creates an AMM vault that holds `lamports` of wrapped SOL, without a transaction. */
export function setAmmVault(chain: Chain, addresses: AccountAddresses, lamports: bigint): void {
  const reserve = chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES);
  const authority = new PublicKey(addresses.ammVaultAuthority);
  chain.setAccount(addresses.ammVault, toTokenAccount(WRAPPED_SOL_MINT, authority, lamports, reserve));
}

/**
 * Pays `lamports` into the creator vault, as trades on the bonding curve do; returns the signature. The first
 * payment adds the rent-exempt minimum, without which the vault could not exist.
 */
export function addCreatorFees(
  chain: Chain,
  programs: LaunchpadPrograms,
  creator: string,
  lamports: bigint,
): string {
  const vault = derive(creator, programs).creatorVault;
  const minimum = chain.balance(vault) === 0n ? chain.rentExemptMinimum(0) : 0n;
  return chain.transfer(vault, minimum + lamports);
}

/** Pays `lamports` of wrapped SOL into the AMM vault, as trades after the bonding curve do; returns the signature. */
export function addAmmCreatorFees(
  chain: Chain,
  programs: LaunchpadPrograms,
  creator: string,
  lamports: bigint,
): string {
  const authority = new PublicKey(derive(creator, programs).ammVaultAuthority);
  return chain.sendFromFaucet((faucet) => depositTokens(faucet, WRAPPED_SOL_MINT, authority, lamports));
}

const derive = (creator: string, { launchpadProgramId, ammProgramId }: LaunchpadPrograms) =>
  new DerivedCreator(creator, { launchpadProgramId, launchpadAmmProgramId: ammProgramId });
