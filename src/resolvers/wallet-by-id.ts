import type { AddressesOf } from "../chain/addresses.ts";
import { invalidSocialId, toSocialId } from "../contract/social-id.ts";
import type { Wallet } from "./wallet.ts";

/**
 * The wallet of an account's id. Reads nothing: addresses are derived from the id. Throws INVALID_SOCIAL_ID.
 */
export type WalletById = (socialId: string) => Wallet;

export function createWalletById({ addressesOf }: { addressesOf: AddressesOf }): WalletById {
  return (text) => {
    const socialId = toSocialId(text);
    if (socialId === undefined) throw invalidSocialId(text);
    return { socialId, account: undefined, addresses: addressesOf(socialId) };
  };
}
