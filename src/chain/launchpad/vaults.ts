import { PublicKey } from "@solana/web3.js";
import { deriveAddress, toAddress } from "../derive-address.ts";
import { wrappedSolAccountOf } from "../token-accounts.ts";

/** The launch platform's programs that keep vaults. */
export interface VaultPrograms {
  readonly launchpad: PublicKey;
  readonly amm: PublicKey;
}

/** A creator of coins (`address`), and the accounts that hold its fees on the launch platform; in base58. */
export type Creator = Pick<DerivedCreator, keyof DerivedCreator>;

/** Derives each vault on first use. A class, because getters on a prototype cost no memory per creator. */
export class DerivedCreator {
  readonly address: string;
  readonly #programs: VaultPrograms;
  #creatorVault: string | undefined;
  #ammVaultAuthority: string | undefined;
  #ammVault: string | undefined;

  constructor(address: string, programs: VaultPrograms) {
    this.address = address;
    this.#programs = programs;
  }

  /** The fees of the creator's tokens that trade on the bonding curve, in lamports. */
  get creatorVault(): string {
    return (this.#creatorVault ??= toAddress(
      creatorVaultOf(new PublicKey(this.address), this.#programs.launchpad),
    ));
  }

  /** Owns {@link ammVault}. */
  get ammVaultAuthority(): string {
    return (this.#ammVaultAuthority ??= toAddress(
      ammVaultAuthorityOf(new PublicKey(this.address), this.#programs.amm),
    ));
  }

  /** The fees of the creator's tokens that trade on the AMM: a wrapped SOL account. */
  get ammVault(): string {
    return (this.#ammVault ??= toAddress(wrappedSolAccountOf(new PublicKey(this.ammVaultAuthority))));
  }
}

/** The launch platform's vault for the fees of every token whose creator is `creator`. */
export function creatorVaultOf(creator: PublicKey, launchpad: PublicKey): PublicKey {
  return deriveAddress([Buffer.from("creator-vault"), creator.toBuffer()], launchpad);
}

/** The owner of the AMM's vault for the fees of every token whose creator is `creator`. */
export function ammVaultAuthorityOf(creator: PublicKey, amm: PublicKey): PublicKey {
  return deriveAddress([Buffer.from("creator_vault"), creator.toBuffer()], amm);
}
