import type { Balance } from "../chain/balances.ts";
import type { LiveBalances } from "../chain/live/live-balances.ts";
import type { RequestScope } from "./request-scope.ts";
import { toWalletWithCoins, type Wallet } from "./wallet.ts";

/** A wallet with the balance that it has now. */
export interface WalletEvent {
  readonly wallet: Wallet;
  readonly balance: Balance;
}

/**
 * Opens a stream of a wallet: an event with its balance at once, and then each time the balance changes. Ends with the
 * stream. Rejects with RATE_LIMITED, SERVICE_BUSY or the error of `find`.
 */
export type WatchWallet = (
  find: () => Wallet | Promise<Wallet>,
  scope: RequestScope,
) => Promise<AsyncIterable<WalletEvent>>;

export function createWatchWallet({ live }: { live: LiveBalances }): WatchWallet {
  return async (find, scope) => {
    const stream = scope.openStream();
    try {
      const wallet = await find();
      return toEvents(wallet, live.watch(toWalletWithCoins(wallet), stream.signal));
    } catch (error) {
      stream.close();
      throw error;
    }
  };
}

async function* toEvents(wallet: Wallet, balances: AsyncIterable<Balance>): AsyncGenerator<WalletEvent> {
  for await (const balance of balances) yield { wallet, balance };
}

/**
 * Renews the request's loaders for an event, and gives them its balance. Returns the event's wallet, whose account is
 * not read again once it has been found.
 */
export function startEvent({ wallet, balance }: WalletEvent, scope: RequestScope): Wallet {
  scope.renewLoaders().setBalance(toWalletWithCoins(wallet), balance);
  return wallet;
}
