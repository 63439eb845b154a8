import type { AddressesOf } from "../chain/addresses.ts";
import { quote } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { inSpan } from "../observability/tracing.ts";
import type { SocialAccount } from "../social/account.ts";
import type { CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import type { Mints, NamedCoins } from "./named-coins.ts";
import type { RequestScope } from "./request-scope.ts";
import type { Wallet } from "./wallet.ts";

/**
 * Finds the wallet of a case-insensitive handle, with the coins of these mints. Reads the social network, never the
 * chain. Throws or rejects with INVALID_HANDLE, INVALID_MINT, SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED,
 * SOCIAL_API_UNAVAILABLE or SERVICE_BUSY.
 */
export type LookUpWallet = (handle: string, scope: RequestScope, mints?: Mints) => Wallet | Promise<Wallet>;

export function createLookUpWallet(needs: {
  handleFormat: HandleFormat;
  addressesOf: AddressesOf;
  namedCoins: NamedCoins;
}): LookUpWallet {
  const { handleFormat, addressesOf, namedCoins } = needs;
  const toWallet = (account: SocialAccount, coins: readonly CoinAddresses[]): Wallet => ({
    socialId: account.id,
    account,
    addresses: addressesOf(account.id),
    coins,
  });

  return (text, { loaders }, mints) =>
    inSpan("lookUpWallet", () => {
      if (!handleFormat.pattern.test(text)) throw invalidHandle(handleFormat, quote(text));
      const coins = namedCoins(mints);
      const account = loaders.accountByHandle(text);
      return account instanceof Promise
        ? account.then((found) => toWallet(found, coins))
        : toWallet(account, coins);
    });
}
