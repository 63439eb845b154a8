import type { AddressesOf } from "../chain/addresses.ts";
import { invalidSocialId, toSocialId } from "../contract/social-id.ts";
import type { Mints, NamedCoins } from "./named-coins.ts";
import type { Wallet } from "./wallet.ts";

/**
 * The wallet of an account's id, with the coins of these mints. Reads nothing: addresses are derived from the id.
 * Throws INVALID_SOCIAL_ID or INVALID_MINT.
 */
export type WalletById = (socialId: string, mints?: Mints) => Wallet;

export function createWalletById(needs: { addressesOf: AddressesOf; namedCoins: NamedCoins }): WalletById {
  const { addressesOf, namedCoins } = needs;
  return (text, mints) => {
    const socialId = toSocialId(text);
    if (socialId === undefined) throw invalidSocialId(text);
    return { socialId, account: undefined, addresses: addressesOf(socialId), coins: namedCoins(mints) };
  };
}
