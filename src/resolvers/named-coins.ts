import type { CoinAddresses, CoinAddressesOf } from "../chain/launchpad/coin-addresses.ts";
import { invalidMint, MAX_MINTS, tooManyMints, toMint } from "../contract/mint.ts";

/** The mints that a request names, in base58; absent or null: none. */
export type Mints = readonly string[] | null | undefined;

/** The coins with these mints, each once. Throws INVALID_MINT. */
export type NamedCoins = (mints: Mints) => readonly CoinAddresses[];

const NONE: readonly CoinAddresses[] = [];

export function createNamedCoins(coinAddressesOf: CoinAddressesOf): NamedCoins {
  return (mints) => {
    if (!mints || mints.length === 0) return NONE;
    if (mints.length > MAX_MINTS) throw tooManyMints(mints.length);
    const coins = mints.map((text) => {
      const mint = toMint(text);
      if (mint === undefined) throw invalidMint(text);
      return coinAddressesOf(mint);
    });
    return [...new Map(coins.map((coin) => [coin.mint, coin])).values()];
  };
}
