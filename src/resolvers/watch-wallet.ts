import type { Balance } from "../chain/balances.ts";
import type { LiveBalances } from "../chain/live/live-balances.ts";
import type { WalletWithCoins } from "../chain/wallets.ts";
import { allCoins, type Mints, type NamedCoins } from "./named-coins.ts";
import type { RequestScope } from "./request-scope.ts";
import type { Wallet } from "./wallet.ts";

/** A wallet with the balances that it has now: one for each list of coins that the operation names. */
export interface WalletEvent {
  readonly wallet: Wallet;
  readonly balances: readonly (readonly [WalletWithCoins, Balance])[];
}

/**
 * Opens a stream of a wallet and of the coins that its fields name: an event at once, and then each time an amount
 * changes. Ends with the stream. Rejects with RATE_LIMITED, SERVICE_BUSY, INVALID_MINT or the error of `find`.
 */
export type WatchWallet = (
  find: () => Wallet | Promise<Wallet>,
  mintsOfFields: readonly Mints[],
  scope: RequestScope,
) => Promise<AsyncIterable<WalletEvent>>;

export function createWatchWallet(needs: { live: LiveBalances; namedCoins: NamedCoins }): WatchWallet {
  const { live, namedCoins } = needs;

  return async (find, mintsOfFields, scope) => {
    const stream = scope.openStream();
    try {
      const named = mintsOfFields.map(namedCoins);
      const coins = allCoins(named);
      const wallet = await find();
      const account = wallet.addresses;
      const readings = live.watch(
        { account, coins },
        { signal: stream.signal, addressBlock: scope.addressBlock },
      );
      return (async function* () {
        for await (const balanceWith of readings)
          yield { wallet, balances: named.map((coins) => [{ account, coins }, balanceWith(coins)] as const) };
      })();
    } catch (error) {
      stream.close();
      throw error;
    }
  };
}

/**
 * Renews the request's loaders for an event, and gives them its balances. Returns the event's wallet, whose account is
 * not read again once it has been found.
 */
export function startEvent({ wallet, balances }: WalletEvent, scope: RequestScope): Wallet {
  const loaders = scope.renewLoaders();
  for (const [named, balance] of balances) loaders.setBalance(named, balance);
  return wallet;
}
