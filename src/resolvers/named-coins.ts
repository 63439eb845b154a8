import type { CoinAddresses, CoinAddressesOf } from "../chain/launchpad/coin-addresses.ts";
import { MAX_MINTS_PER_WALLET, tooManyMints, toMints } from "../contract/mint.ts";

/** The mints that a field names, in base58; absent or null: none. */
export type Mints = readonly string[] | null | undefined;

/** The coins with these mints, each once. Throws INVALID_MINT. */
export type NamedCoins = (mints: Mints) => readonly CoinAddresses[];

const NONE: readonly CoinAddresses[] = [];

export function createNamedCoins(coinAddressesOf: CoinAddressesOf): NamedCoins {
  return (mints) => (mints && mints.length > 0 ? toMints(mints).map(coinAddressesOf) : NONE);
}

/** The coins that the fields of one wallet name, each once. Throws INVALID_MINT. */
export function allCoins(named: readonly (readonly CoinAddresses[])[]): readonly CoinAddresses[] {
  if (named.every((coins) => coins.length === 0)) return NONE;
  const coins = new Map(named.flat().map((coin) => [coin.mint, coin]));
  if (coins.size > MAX_MINTS_PER_WALLET) throw tooManyMints(coins.size, MAX_MINTS_PER_WALLET);
  return [...coins.values()];
}
