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

/** About 700 bytes each with all four. Deriving one anew costs some hundred microseconds an address. */
const MAX_KNOWN_ACCOUNTS = 100_000;

export const TOKEN_PROGRAM_ID = new PublicKey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
export const ASSOCIATED_TOKEN_PROGRAM_ID = new PublicKey("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
/** The mint of wrapped SOL. */
export const WRAPPED_SOL_MINT = new PublicKey("So11111111111111111111111111111111111111112");

interface Programs {
  readonly escrowSeed: Buffer;
  readonly escrow: PublicKey;
  readonly launchpad: PublicKey;
  readonly amm: PublicKey;
}

/**
 * Derives the addresses of accounts by their canonical decimal id: the escrow address from the seeds
 * `escrowSeed`, id; the creator vault from the launch platform's `creator-vault`, address; the authority of
 * the AMM's vault from the AMM's `creator_vault`, address. Each is derived once, the vaults when they are
 * first asked for: a wallet whose balance nobody wants needs none.
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
  const known = new LRUCache<string, AccountAddresses>({ max: MAX_KNOWN_ACCOUNTS });

  return (socialId) => {
    const cached = known.get(socialId);
    if (cached) return cached;
    const addresses = new DerivedAddresses(socialId, programs);
    known.set(socialId, addresses);
    return addresses;
  };
}

class DerivedAddresses implements AccountAddresses {
  readonly address: string;
  readonly #programs: Programs;
  #creatorVault: string | undefined;
  #ammVaultAuthority: string | undefined;
  #ammVault: string | undefined;

  constructor(socialId: string, programs: Programs) {
    this.#programs = programs;
    this.address = deriveAddress([programs.escrowSeed, Buffer.from(socialId)], programs.escrow).toBase58();
  }

  get creatorVault(): string {
    return (this.#creatorVault ??= creatorVaultOf(
      new PublicKey(this.address),
      this.#programs.launchpad,
    ).toBase58());
  }

  get ammVaultAuthority(): string {
    return (this.#ammVaultAuthority ??= ammVaultAuthorityOf(
      new PublicKey(this.address),
      this.#programs.amm,
    ).toBase58());
  }

  get ammVault(): string {
    return (this.#ammVault ??= wrappedSolAccountOf(new PublicKey(this.ammVaultAuthority)).toBase58());
  }
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
