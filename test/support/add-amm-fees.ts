import { PublicKey } from "@solana/web3.js";
import { DerivedCreator } from "../../src/chain/launchpad/vaults.ts";
import type { Chain } from "../../src/sandbox/chain/chain.ts";
import { depositTokens, WRAPPED_SOL } from "../../src/sandbox/chain/token-accounts.ts";

/**
 * Pays `lamports` of wrapped SOL into the AMM vault, as trades after the bonding curve do; returns
 * the signature.
 */
export function addAmmFees(chain: Chain, creator: string, lamports: bigint): string {
  const authority = new PublicKey(new DerivedCreator(creator).ammVaultAuthority);
  return chain.sendFromFaucet((faucet) => depositTokens(faucet, WRAPPED_SOL, authority, lamports));
}
