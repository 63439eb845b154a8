import { PublicKey } from "@solana/web3.js";
import { LRUCache } from "lru-cache";
import { deriveAddress, toAddress } from "./derive-address.ts";
import { ammVaultAuthorityOf, creatorVaultOf, type CreatorVaults } from "./launchpad/vaults.ts";
import { wrappedSolAccountOf } from "./token-accounts.ts";

/** The addresses of one social-network account, in base58. They never change. */
export interface AccountAddresses extends CreatorVaults {
  /** The escrow address: a token names it as its creator, and collected fees arrive at it. */
  readonly address: string;
}

/** Derives the addresses of the account with this id, in canonical decimal digits. */
export type AddressesOf = (socialId: string) => AccountAddresses;

/** An entry with all four addresses takes about 700 bytes. */
const MAX_CACHED_ACCOUNTS = 100_000;

interface Programs {
  readonly escrowSeed: Buffer;
  readonly escrow: PublicKey;
  readonly launchpad: PublicKey;
  readonly amm: PublicKey;
}

/**
 * Derives the addresses of accounts. Seeds: the escrow address from `escrowSeed` and the id; the creator
 * vault from the launch platform's `creator-vault` and the escrow address; the AMM vault's authority from
 * the AMM's `creator_vault` and the escrow address. Caches each address; derives the vaults on first use,
 * because not every request needs them.
 */
export function createAddresses(ids: {
  escrowProgramId: string;
  escrowSeed: string;
  launchpadProgramId: string;
  launchpadAmmProgramId: string;
}): AddressesOf {
  const programs: Programs = {
    escrowSeed: Buffer.from(ids.escrowSeed),
    escrow: new PublicKey(ids.escrowProgramId),
    launchpad: new PublicKey(ids.launchpadProgramId),
    amm: new PublicKey(ids.launchpadAmmProgramId),
  };
  const cache = new LRUCache<string, AccountAddresses>({ max: MAX_CACHED_ACCOUNTS });

  return (socialId) => {
    const cached = cache.get(socialId);
    if (cached) return cached;
    const addresses = new DerivedAddresses(socialId, programs);
    cache.set(socialId, addresses);
    return addresses;
  };
}

/** A class, because getters on a prototype cost no memory per account. */
class DerivedAddresses implements AccountAddresses {
  readonly address: string;
  readonly #programs: Programs;
  #creatorVault: string | undefined;
  #ammVaultAuthority: string | undefined;
  #ammVault: string | undefined;

  constructor(socialId: string, programs: Programs) {
    this.#programs = programs;
    this.address = toAddress(deriveAddress([programs.escrowSeed, Buffer.from(socialId)], programs.escrow));
  }

  get creatorVault(): string {
    return (this.#creatorVault ??= toAddress(
      creatorVaultOf(new PublicKey(this.address), this.#programs.launchpad),
    ));
  }

  get ammVaultAuthority(): string {
    return (this.#ammVaultAuthority ??= toAddress(
      ammVaultAuthorityOf(new PublicKey(this.address), this.#programs.amm),
    ));
  }

  get ammVault(): string {
    return (this.#ammVault ??= toAddress(wrappedSolAccountOf(new PublicKey(this.ammVaultAuthority))));
  }
}
