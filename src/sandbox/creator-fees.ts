import { PublicKey } from "@solana/web3.js";
import { creatorVaultOf, deriveAddress } from "../chain/addresses.ts";
import type { Chain } from "./chain.ts";
import { toWrappedSolAccount, TOKEN_ACCOUNT_BYTES, wrappedSolAccountOf, wrapSol } from "./wrapped-sol.ts";

/** The ids of the launch platform's programs. */
export interface LaunchpadPrograms {
  readonly launchpadProgramId: string;
  readonly ammProgramId: string;
}

/** Where the AMM keeps the fees of a creator's tokens that have left the bonding curve, in base58. */
export interface AmmVaultAddresses {
  /** Owns the vault; the AMM signs for it. */
  readonly ammVaultAuthority: string;
  /** The vault: a token account of wrapped SOL. */
  readonly ammVault: string;
}

export function ammVaultOf(creator: string, ammProgramId: string): AmmVaultAddresses {
  const authority = ammVaultAuthorityOf(creator, ammProgramId);
  return {
    ammVaultAuthority: authority.toBase58(),
    ammVault: wrappedSolAccountOf(authority).toBase58(),
  };
}

function ammVaultAuthorityOf(creator: string, ammProgramId: string): PublicKey {
  const seeds = [Buffer.from("creator_vault"), new PublicKey(creator).toBuffer()];
  return deriveAddress(seeds, new PublicKey(ammProgramId));
}

/** Puts wrapped SOL into an AMM vault that does not exist yet, out of nothing, without a transaction. */
export function setAmmVault(chain: Chain, vault: AmmVaultAddresses, lamports: bigint): void {
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
  const authority = ammVaultAuthorityOf(creator, ammProgramId);
  return chain.sendFromFaucet((faucet) => wrapSol(faucet, authority, lamports));
}
