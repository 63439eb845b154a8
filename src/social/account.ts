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

/** The lower-case handle or the id, as used in the network's URLs and in Redis's keys. */
export const nameOf = (key: AccountKey): string => (isHandleKey(key) ? key.slice(1) : key);
