/** What an account shows of itself; null where the network gives nothing usable. */
export interface Profile {
  readonly name: string | null;
  /** Whether the network has verified the account. */
  readonly verified: boolean | null;
  readonly followers: number | null;
  /** An https URL. */
  readonly pictureUrl: string | null;
}

/** A social-network account: its id, which never changes, its current handle and its profile. */
export interface SocialAccount {
  /** Canonical decimal digits, at most 2^64-1. */
  readonly id: string;
  /** As the network spells it. */
  readonly handle: string;
  readonly profile: Profile;
}

/** What an account is looked up by: `@` and its lower-case handle, or its id. */
export type AccountKey = string;

export const toHandleKey = (handle: string): AccountKey => `@${handle.toLowerCase()}`;

export const isHandleKey = (key: AccountKey): boolean => key.startsWith("@");

/** The key's lower-case handle or id, as the network and Redis know it. */
export const nameOf = (key: AccountKey): string => (isHandleKey(key) ? key.slice(1) : key);
