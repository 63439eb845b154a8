import { createLruCache } from "../store/lru-cache.ts";
import { deriveAddress } from "./derive-address.ts";
import { DerivedCreator, type Creator } from "./launchpad/vaults.ts";

/** In base58. `address`, the escrow address, is the creator of the coins; collects pay to it. */
export type AccountAddresses = Creator;

/** Derives an account's addresses from its social id, which is in canonical decimal digits. */
export type AddressesOf = (socialId: string) => AccountAddresses;

/** An entry with all five addresses takes about 800 bytes. */
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
  const cache = createLruCache<string, AccountAddresses>(MAX_CACHED_ACCOUNTS, {
    memoMethod: (socialId) =>
      new DerivedCreator(deriveAddress([escrowSeed, socialId], escrowProgramId)),
  });
  return (socialId) => cache.memo(socialId);
}
