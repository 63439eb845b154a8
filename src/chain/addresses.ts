import { createLruCache } from "../store/lru-cache.ts";
import { deriveAddress } from "./derive-address.ts";
import { DerivedCreator, type Creator, type VaultPrograms } from "./launchpad/vaults.ts";

/**
 * The addresses of one social-network account, in base58. They never change. `address` is the escrow address: a token
 * names it as its creator, and collected fees arrive at it.
 */
export type AccountAddresses = Creator;

/** Derives the addresses of the account with this id, in canonical decimal digits. */
export type AddressesOf = (socialId: string) => AccountAddresses;

/** An entry with all four addresses takes about 700 bytes. */
const MAX_CACHED_ACCOUNTS = 100_000;

/**
 * Derives the addresses of accounts. Seeds: the escrow address from `escrowSeed` and the id; the creator
 * vault from the launch platform's `creator-vault` and the escrow address; the AMM vault's authority from
 * the AMM's `creator_vault` and the escrow address. Caches each address; derives the vaults on first use,
 * because not every request needs them.
 */
export function createAddresses(
  ids: VaultPrograms & { escrowProgramId: string; escrowSeed: string },
): AddressesOf {
  const { escrowProgramId, escrowSeed } = ids;
  const cache = createLruCache<string, AccountAddresses>(MAX_CACHED_ACCOUNTS, {
    memoMethod: (socialId) => new DerivedCreator(deriveAddress([escrowSeed, socialId], escrowProgramId), ids),
  });
  return (socialId) => cache.memo(socialId);
}
