import type { AccountAddresses } from "../chain/addresses.ts";
import type { Balance } from "../chain/balances.ts";
import type { CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import type { WalletWithCoins } from "../chain/wallets.ts";
import type { SocialAccount } from "../social/account.ts";
import type { RequestScope } from "./request-scope.ts";

/** An account, its addresses, and the coins that its request names. `account` is set if it was looked up by handle. */
export interface Wallet {
  readonly socialId: string;
  readonly account: SocialAccount | undefined;
  readonly addresses: AccountAddresses;
  readonly coins: readonly CoinAddresses[];
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

/** The wallet as the chain's parts take it. */
export function toWalletWithCoins({ addresses, coins }: Wallet): WalletWithCoins {
  return { account: addresses, coins };
}

/** The balance of a wallet and of its coins, read from the chain. Fails with LOOKUP_FAILED. */
export function balanceOf(wallet: Wallet, { loaders }: RequestScope): Promise<Balance> {
  return loaders.balance(toWalletWithCoins(wallet));
}
