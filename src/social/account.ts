/** The public profile of an account. A field is null if the network gives no usable value. */
export interface Profile {
  readonly name: string | null;
  /** Whether the network has verified the account. */
  readonly verified: boolean | null;
  readonly followers: number | null;
  /** An https URL. */
  readonly pictureUrl: string | null;
}

export interface SocialAccount {
  /** Never changes. Canonical decimal digits, at most 2^64-1. */
  readonly id: string;
  /** As the network spells it. */
  readonly handle: string;
  readonly profile: Profile;
}

/** The key of a lookup: `@` and the handle in lower case, or the id. */
export type AccountKey = string;

export const toHandleKey = (handle: string): AccountKey => `@${handle.toLowerCase()}`;

export const isHandleKey = (key: AccountKey): boolean => key.startsWith("@");

/** The key's lower-case handle or id, as the network and Redis know it. */
export const nameOf = (key: AccountKey): string => (isHandleKey(key) ? key.slice(1) : key);
