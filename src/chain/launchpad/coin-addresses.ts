import { createLruCache } from "../../store/lru-cache.ts";
import { deriveAddress, toKeyBytes } from "../derive-address.ts";
import { tokenAccountOf, WRAPPED_SOL_MINT } from "../token-accounts.ts";
import { DerivedCreator, type Creator, type VaultPrograms } from "./vaults.ts";

/** The addresses of one coin on the launch platform, in base58. They never change. */
export type CoinAddresses = Pick<DerivedCoinAddresses, keyof DerivedCoinAddresses>;

/** Derives the addresses of the coin with this mint, in base58. */
export type CoinAddressesOf = (mint: string) => CoinAddresses;

/** An entry with all addresses takes up to 4.2 kB. */
const MAX_CACHED_COINS = 10_000;

/** The pool's index: 0, a u16. */
const POOL_INDEX = Buffer.alloc(2);

interface Programs extends VaultPrograms {
  readonly launchpadFeesProgramId: string;
}

/** Derives the addresses of coins, each on first use, and caches them. */
export function createCoinAddresses(programs: Programs): CoinAddressesOf {
  const cache = createLruCache<string, CoinAddresses>(MAX_CACHED_COINS, {
    memoMethod: (mint) => new DerivedCoinAddresses(mint, programs),
  });
  return (mint) => cache.memo(mint);
}

/** The seeds of the pool to which the launch platform migrates a coin. The pool's creator is the platform's PDA. */
export function poolSeedsOf(
  mint: string,
  launchpadProgramId: string,
  quoteMint = WRAPPED_SOL_MINT,
): [name: Buffer, index: Buffer, creator: Buffer, mint: Buffer, quoteMint: Buffer] {
  const key = toKeyBytes(mint);
  const creator = toKeyBytes(deriveAddress(["pool-authority", key], launchpadProgramId));
  return [Buffer.from("pool"), POOL_INDEX, creator, key, quoteMint.toBuffer()];
}

/** A class, because getters on a prototype cost no memory per coin. */
class DerivedCoinAddresses {
  readonly mint: string;
  readonly #programs: Programs;
  #curve: string | undefined;
  #curveTokens: string | undefined;
  #pool: string | undefined;
  #poolTokens: string | undefined;
  #sharingConfig: Creator | undefined;

  constructor(mint: string, programs: Programs) {
    this.mint = mint;
    this.#programs = programs;
  }

  /** The bonding curve, on which the coin trades first. */
  get curve(): string {
    return (this.#curve ??= this.#derive("bonding-curve", this.#programs.launchpadProgramId));
  }

  /** The curve's wrapped SOL account, which a sweep names but does not use. */
  get curveTokens(): string {
    return (this.#curveTokens ??= tokenAccountOf(this.curve));
  }

  /** The AMM's pool of the coin and wrapped SOL, into which the launch platform migrates the coin. */
  get pool(): string {
    const { launchpadProgramId, launchpadAmmProgramId } = this.#programs;
    return (this.#pool ??= deriveAddress(poolSeedsOf(this.mint, launchpadProgramId), launchpadAmmProgramId));
  }

  /** The pool's wrapped SOL account. */
  get poolTokens(): string {
    return (this.#poolTokens ??= tokenAccountOf(this.pool));
  }

  /** The sharing config. It becomes the coin's creator, with vaults of its own, once the coin's fees are shared. */
  get sharingConfig(): Creator {
    return (this.#sharingConfig ??= new DerivedCreator(
      this.#derive("sharing-config", this.#programs.launchpadFeesProgramId),
      this.#programs,
    ));
  }

  #derive(seed: string, program: string): string {
    return deriveAddress([seed, toKeyBytes(this.mint)], program);
  }
}
