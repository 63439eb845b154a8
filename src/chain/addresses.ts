import { PublicKey } from "@solana/web3.js";
import { LRUCache } from "lru-cache";

/** The addresses that belong to one social-network account, in base58. They never change. */
export interface AccountAddresses {
  /** The escrow address: what a token names as its creator, and where collected fees arrive. */
  readonly address: string;
  /** The launch platform's vault in which the fees of that creator's tokens wait. */
  readonly creatorVault: string;
  /** Owns the vault in which the AMM keeps the fees of tokens that have left the bonding curve. */
  readonly ammVaultAuthority: string;
  /** That vault: the authority's associated token account of wrapped SOL. */
  readonly ammVault: string;
}

export type AddressesOf = (socialId: string) => AccountAddresses;

/** About 500 bytes each. Deriving one anew costs some hundred microseconds an address. */
const MAX_KNOWN_ACCOUNTS = 100_000;

export const TOKEN_PROGRAM_ID = new PublicKey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
export const ASSOCIATED_TOKEN_PROGRAM_ID = new PublicKey("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
/** The mint of wrapped SOL. */
export const WRAPPED_SOL_MINT = new PublicKey("So11111111111111111111111111111111111111112");

/**
 * Derives the addresses of accounts by their canonical decimal id, each once: the escrow address from
 * the seeds `escrowSeed`, id; the creator vault from the launch platform's `creator-vault`, address; the
 * authority of the AMM's vault from the AMM's `creator_vault`, address.
 */
export function createAddresses(programs: {
  escrowProgramId: string;
  escrowSeed: string;
  launchpadProgramId: string;
  launchpadAmmProgramId: string;
}): AddressesOf {
  const escrowProgram = new PublicKey(programs.escrowProgramId);
  const launchpad = new PublicKey(programs.launchpadProgramId);
  const amm = new PublicKey(programs.launchpadAmmProgramId);
  const known = new LRUCache<string, AccountAddresses>({ max: MAX_KNOWN_ACCOUNTS });

  return (socialId) => {
    const cached = known.get(socialId);
    if (cached) return cached;
    const address = deriveAddress([Buffer.from(programs.escrowSeed), Buffer.from(socialId)], escrowProgram);
    const ammVaultAuthority = ammVaultAuthorityOf(address, amm);
    const addresses = {
      address: address.toBase58(),
      creatorVault: creatorVaultOf(address, launchpad).toBase58(),
      ammVaultAuthority: ammVaultAuthority.toBase58(),
      ammVault: wrappedSolAccountOf(ammVaultAuthority).toBase58(),
    };
    known.set(socialId, addresses);
    return addresses;
  };
}

/** The launch platform's vault for the fees of every token whose creator is `creator`. */
export function creatorVaultOf(creator: PublicKey, launchpad: PublicKey): PublicKey {
  return deriveAddress([Buffer.from("creator-vault"), creator.toBuffer()], launchpad);
}

/** What owns the AMM's vault for the fees of every token whose creator is `creator`. */
export function ammVaultAuthorityOf(creator: PublicKey, amm: PublicKey): PublicKey {
  return deriveAddress([Buffer.from("creator_vault"), creator.toBuffer()], amm);
}

/** The associated token account of wrapped SOL that belongs to `owner`. */
export function wrappedSolAccountOf(owner: PublicKey): PublicKey {
  const seeds = [owner.toBuffer(), TOKEN_PROGRAM_ID.toBuffer(), WRAPPED_SOL_MINT.toBuffer()];
  return deriveAddress(seeds, ASSOCIATED_TOKEN_PROGRAM_ID);
}

/** The program-derived address of `program` for `seeds`. */
export function deriveAddress(seeds: Buffer[], program: PublicKey): PublicKey {
  return PublicKey.findProgramAddressSync(seeds, program)[0];
}
