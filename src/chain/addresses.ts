import { PublicKey } from "@solana/web3.js";
import { LRUCache } from "lru-cache";

/** The addresses that belong to one social-network account, in base58. They never change. */
export interface AccountAddresses {
  /** The escrow address: what a token names as its creator, and where collected fees arrive. */
  readonly address: string;
  /** The launch platform's vault in which the fees of that creator's tokens wait. */
  readonly creatorVault: string;
}

export type AddressesOf = (socialId: string) => AccountAddresses;

/** About 300 bytes each. Deriving one anew costs some hundred microseconds. */
const MAX_KNOWN_ACCOUNTS = 100_000;

/**
 * Derives the addresses of accounts by their canonical decimal id, each once: the escrow address from
 * the seeds `escrowSeed`, id; the creator vault from the launch platform's `creator-vault`, address.
 */
export function createAddresses(programs: {
  escrowProgramId: string;
  escrowSeed: string;
  launchpadProgramId: string;
}): AddressesOf {
  const escrowProgram = new PublicKey(programs.escrowProgramId);
  const launchpad = new PublicKey(programs.launchpadProgramId);
  const known = new LRUCache<string, AccountAddresses>({ max: MAX_KNOWN_ACCOUNTS });

  return (socialId) => {
    const cached = known.get(socialId);
    if (cached) return cached;
    const address = deriveAddress([Buffer.from(programs.escrowSeed), Buffer.from(socialId)], escrowProgram);
    const creatorVault = creatorVaultOf(address, launchpad);
    const addresses = { address: address.toBase58(), creatorVault: creatorVault.toBase58() };
    known.set(socialId, addresses);
    return addresses;
  };
}

/** The launch platform's vault for the fees of every token whose creator is `creator`. */
export function creatorVaultOf(creator: PublicKey, launchpad: PublicKey): PublicKey {
  return deriveAddress([Buffer.from("creator-vault"), creator.toBuffer()], launchpad);
}

/** The program-derived address of `program` for `seeds`. */
export function deriveAddress(seeds: Buffer[], program: PublicKey): PublicKey {
  return PublicKey.findProgramAddressSync(seeds, program)[0];
}
