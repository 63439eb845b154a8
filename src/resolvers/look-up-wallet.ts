import type { AddressesOf } from "../chain/addresses.ts";
import { quote } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { inSpan } from "../observability/tracing.ts";
import type { SocialAccount } from "../social/account.ts";
import type { RequestScope } from "./request-scope.ts";
import type { Wallet } from "./wallet.ts";

/**
 * Finds the wallet of a case-insensitive handle. Reads the social network, never the chain. Throws or rejects with
 * INVALID_HANDLE, SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED, SOCIAL_API_UNAVAILABLE or SERVICE_BUSY.
 */
export type LookUpWallet = (handle: string, scope: RequestScope) => Wallet | Promise<Wallet>;

export function createLookUpWallet(needs: {
  handleFormat: HandleFormat;
  addressesOf: AddressesOf;
}): LookUpWallet {
  const { handleFormat, addressesOf } = needs;
  const toWallet = (account: SocialAccount): Wallet => ({
    socialId: account.id,
    account,
    addresses: addressesOf(account.id),
  });

  return (text, { loaders }) =>
    inSpan("lookUpWallet", () => {
      if (!handleFormat.pattern.test(text)) throw invalidHandle(handleFormat, quote(text));
      const account = loaders.accountByHandle(text);
      return account instanceof Promise ? account.then(toWallet) : toWallet(account);
    });
}
