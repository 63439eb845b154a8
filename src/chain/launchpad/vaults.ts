import { deriveAddress, toKeyBytes } from "../primitives/derive-address.ts";
import { tokenAccountOf } from "./token-accounts.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "./program-ids.ts";

/**
 * The address (base58) of a creator of coins, and the addresses of the vaults for the creator's
 * fees.
 */
export type Creator = Pick<DerivedCreator, keyof DerivedCreator>;

/**
 * Derives each vault on first use. A class, because getters on a prototype cost no memory per
 * creator.
 */
export class DerivedCreator {
  readonly address: string;
  #creatorVault: string | undefined;
  #vaultTokens: string | undefined;
  #ammVaultAuthority: string | undefined;
  #ammVault: string | undefined;

  constructor(address: string) {
    this.address = address;
  }

  /** Holds the fees, in lamports, of the creator's coins that trade on a bonding curve. */
  get creatorVault(): string {
    return (this.#creatorVault ??= this.#derive("creator-vault", LAUNCHPAD_PROGRAM_ID));
  }

  /** The creator vault's wrapped SOL account, which a sweep names but does not use. */
  get vaultTokens(): string {
    return (this.#vaultTokens ??= tokenAccountOf(this.creatorVault));
  }

  /** Owns {@link ammVault}. */
  get ammVaultAuthority(): string {
    return (this.#ammVaultAuthority ??= this.#derive("creator_vault", LAUNCHPAD_AMM_PROGRAM_ID));
  }

  /** The wrapped SOL account that holds the fees of the creator's coins that trade on the AMM. */
  get ammVault(): string {
    return (this.#ammVault ??= tokenAccountOf(this.ammVaultAuthority));
  }

  #derive(seed: string, program: string): string {
    return deriveAddress([seed, toKeyBytes(this.address)], program);
  }
}
