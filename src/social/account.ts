import type { Profile } from "./profile.ts";

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
