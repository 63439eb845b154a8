import { PublicKey } from "@solana/web3.js";
import { creatorVaultOf } from "../chain/addresses.ts";
import type { Chain } from "./chain.ts";

/**
 * What trading in a creator's tokens does: pays `lamports` into the launch platform's vault of that creator,
 * on top of the rent-exempt minimum, without which the vault could not exist. Returns the signature.
 */
export function addCreatorFees(
  chain: Chain,
  launchpadProgramId: string,
  creator: string,
  lamports: bigint,
): string {
  const vault = creatorVaultOf(new PublicKey(creator), new PublicKey(launchpadProgramId)).toBase58();
  const minimum = chain.balance(vault) === 0n ? chain.rentExemptMinimum(0) : 0n;
  return chain.transfer(vault, minimum + lamports);
}
