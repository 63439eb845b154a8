import { PublicKey } from "@solana/web3.js";
import { LRUCache } from "lru-cache";
import { deriveAddress, toAddress } from "./derive-address.ts";
import { DerivedCreator, type Creator } from "./launchpad/vaults.ts";

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
export function createAddresses(ids: {
  escrowProgramId: string;
  escrowSeed: string;
  launchpadProgramId: string;
  launchpadAmmProgramId: string;
}): AddressesOf {
  const escrowSeed = Buffer.from(ids.escrowSeed);
  const escrow = new PublicKey(ids.escrowProgramId);
  const programs = {
    launchpad: new PublicKey(ids.launchpadProgramId),
    amm: new PublicKey(ids.launchpadAmmProgramId),
  };
  const cache = new LRUCache<string, AccountAddresses, undefined>({
    max: MAX_CACHED_ACCOUNTS,
    memoMethod: (socialId) =>
      new DerivedCreator(toAddress(deriveAddress([escrowSeed, Buffer.from(socialId)], escrow)), programs),
  });
  return (socialId) => cache.memo(socialId);
}
