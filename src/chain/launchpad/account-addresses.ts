import { createLruCache } from "../../store/lru-cache.ts";
import { findAddress } from "../primitives/derive-address.ts";
import { DerivedCreator, type Creator } from "./vaults.ts";

/** In base58. `address`, the escrow address, is the creator of the coins; collects pay to it. */
export type AccountAddresses = Creator;

/** How an escrow address is derived, so that a caller can check it. */
export interface Derivation {
  /** In base58. */
  readonly program: string;
  /** In order, as text; their bytes are UTF-8. */
  readonly seeds: readonly string[];
  /** The last seed, a byte. */
  readonly bump: number;
}

/** An account's addresses, with the derivation of the escrow address. */
export type DerivedAddresses = AccountAddresses & { readonly derivation: Derivation };

/** Derives an account's addresses from its social id, which is in canonical decimal digits. */
export type AddressesOf = (socialId: string) => DerivedAddresses;

/** An entry with all five addresses takes about 900 bytes. */
const MAX_CACHED_ACCOUNTS = 100_000;

/**
 * Derives and caches the addresses of accounts. Vaults are derived on first use: not every request
 * needs them. Seeds:
 * - escrow address: `escrowSeed` and the social id
 * - creator vault (a PDA of the launch platform): `creator-vault` and the escrow address
 * - authority of the AMM vault (a PDA of the AMM): `creator_vault` and the escrow address
 */
export function createAddresses(needs: {
  escrowProgramId: string;
  escrowSeed: string;
}): AddressesOf {
  const { escrowProgramId, escrowSeed } = needs;
  const cache = createLruCache<string, DerivedAddresses>(MAX_CACHED_ACCOUNTS, {
    memoMethod: (socialId) => new DerivedAccount(escrowProgramId, [escrowSeed, socialId]),
  });
  return (socialId) => cache.memo(socialId);
}

class DerivedAccount extends DerivedCreator {
  readonly derivation: Derivation;

  constructor(program: string, seeds: readonly string[]) {
    const { address, bump } = findAddress(seeds, program);
    super(address);
    this.derivation = { program, seeds, bump };
  }
}
