import { deriveAddress, toKeyBytes } from "../derive-address.ts";
import { tokenAccountOf } from "../token-accounts.ts";

/** The addresses of the launch platform's programs that keep vaults, in base58. */
export interface VaultPrograms {
  readonly launchpadProgramId: string;
  readonly launchpadAmmProgramId: string;
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
    const { launchpadProgramId } = this.#programs;
    return (this.#creatorVault ??= deriveAddress(
      ["creator-vault", toKeyBytes(this.address)],
      launchpadProgramId,
    ));
  }

  /** Owns {@link ammVault}. */
  get ammVaultAuthority(): string {
    const { launchpadAmmProgramId } = this.#programs;
    return (this.#ammVaultAuthority ??= deriveAddress(
      ["creator_vault", toKeyBytes(this.address)],
      launchpadAmmProgramId,
    ));
  }

  /** The fees of the creator's tokens that trade on the AMM: a wrapped SOL account. */
  get ammVault(): string {
    return (this.#ammVault ??= tokenAccountOf(this.ammVaultAuthority));
  }
}
