import type { Balance } from "../chain/balances.ts";
import type { Mints, NamedCoins } from "./named-coins.ts";
import type { RequestScope } from "./request-scope.ts";
import type { Wallet } from "./wallet.ts";

/**
 * The balance of a wallet with the coins of these mints, read from the chain. Throws or rejects with INVALID_MINT or
 * LOOKUP_FAILED.
 */
export type ReadBalance = (wallet: Wallet, mints: Mints, scope: RequestScope) => Promise<Balance>;

export function createReadBalance({ namedCoins }: { namedCoins: NamedCoins }): ReadBalance {
  return ({ addresses }, mints, { loaders }) =>
    loaders.balance({ account: addresses, coins: namedCoins(mints) });
}
