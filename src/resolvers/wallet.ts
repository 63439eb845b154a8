import type { AccountAddresses } from "../chain/addresses.ts";
import type { SocialAccount } from "../social/account.ts";
import type { RequestScope } from "./request-scope.ts";

/** An account and its addresses. `account` is set if it was looked up by handle. */
export interface Wallet {
  readonly socialId: string;
  readonly account: SocialAccount | undefined;
  readonly addresses: AccountAddresses;
}

/**
 * The account of a wallet, read from the social network if the wallet was found by id. Fails with
 * SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED, SOCIAL_API_UNAVAILABLE or SERVICE_BUSY.
 */
export function accountOf(
  { account, socialId }: Wallet,
  { loaders }: RequestScope,
): SocialAccount | Promise<SocialAccount> {
  return account ?? loaders.accountById(socialId);
}
