import type { PublicKey } from "@solana/web3.js";
import { deriveAddress } from "../derive-address.ts";

/** The accounts that hold one creator's fees on the launch platform; addresses in base58. */
export interface CreatorVaults {
  /** The fees of the creator's tokens that trade on the bonding curve, in lamports. */
  readonly creatorVault: string;
  /** Owns {@link ammVault}. */
  readonly ammVaultAuthority: string;
  /** The fees of the creator's tokens that trade on the AMM: a wrapped SOL account. */
  readonly ammVault: string;
}

/** The launch platform's vault for the fees of every token whose creator is `creator`. */
export function creatorVaultOf(creator: PublicKey, launchpad: PublicKey): PublicKey {
  return deriveAddress([Buffer.from("creator-vault"), creator.toBuffer()], launchpad);
}

/** The owner of the AMM's vault for the fees of every token whose creator is `creator`. */
export function ammVaultAuthorityOf(creator: PublicKey, amm: PublicKey): PublicKey {
  return deriveAddress([Buffer.from("creator_vault"), creator.toBuffer()], amm);
}
