import { createLruCache } from "../../store/lru-cache.ts";
import { deriveAddress, toKeyBytes } from "../primitives/derive-address.ts";
import { tokenAccountOf, WRAPPED_SOL_MINT } from "./token-accounts.ts";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "./program-ids.ts";
import { DerivedCreator, type Creator } from "./vaults.ts";

/** The addresses of one coin on the launch platform, in base58. They never change. */
export type CoinAddresses = Readonly<ReturnType<typeof deriveCoin>>;

/** An entry with all addresses takes up to 4.2 kB. */
const MAX_CACHED_COINS = 10_000;

const cache = createLruCache<string, CoinAddresses>(MAX_CACHED_COINS, {
  memoMethod: (mint) => deriveCoin(mint),
});

/** Derives the addresses of the coin with this mint (in base58), and caches them. */
export const coinAddressesOf = (mint: string): CoinAddresses => cache.memo(mint);

/** The pool to which the launch platform moves the coin when it leaves its curve. */
export const poolOf = (mint: string, quoteMint?: string): string =>
  deriveAddress(poolSeedsOf(mint, quoteMint), LAUNCHPAD_AMM_PROGRAM_ID);

/**
 * The seeds of the pool to which the launch platform migrates a coin. The pool's creator is the
 * platform's PDA.
 */
export function poolSeedsOf(mint: string, quoteMint = WRAPPED_SOL_MINT) {
  const key = toKeyBytes(mint);
  const creator = toKeyBytes(deriveAddress(["pool-authority", key], LAUNCHPAD_PROGRAM_ID));
  // The pool's index is 0, a u16.
  return ["pool", Buffer.alloc(2), creator, key, toKeyBytes(quoteMint)] as const;
}

function deriveCoin(mint: string) {
  const key = toKeyBytes(mint);
  const curve = deriveAddress(["bonding-curve", key], LAUNCHPAD_PROGRAM_ID);
  const pool = poolOf(mint);
  const sharingConfig: Creator = new DerivedCreator(
    deriveAddress(["sharing-config", key], LAUNCHPAD_FEES_PROGRAM_ID),
  );
  return {
    mint,
    /** The bonding curve, on which the coin trades first. */
    curve,
    /** The curve's wrapped SOL account, which a sweep names but does not use. */
    curveTokens: tokenAccountOf(curve),
    /**
     * The AMM's pool of the coin and wrapped SOL, into which the launch platform migrates the coin.
     */
    pool,
    /** The pool's wrapped SOL account. */
    poolTokens: tokenAccountOf(pool),
    /**
     * The sharing config. It becomes the coin's creator, with vaults of its own, once the coin's
     * fees are shared.
     */
    sharingConfig,
  };
}
