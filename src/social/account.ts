import { z } from "zod";
import { toSocialId } from "../contract/social-id.ts";
import { PROFILE } from "./profile.ts";

export const ACCOUNT = z.object({
  /** Never changes. Canonical decimal digits, at most 2^64-1. */
  id: z.string().refine((id) => toSocialId(id) === id),
  /**
   * As the network spells it. ASCII: other letters may become ASCII in lower case, as the Kelvin
   * sign does.
   */
  handle: z.string().regex(/^\w+$/),
  profile: PROFILE,
});

export type SocialAccount = Readonly<z.infer<typeof ACCOUNT>>;

/** The key of a lookup: `@` and the handle in lower case, or the id. */
export type AccountKey = string;

export const toHandleKey = (handle: string): AccountKey => `@${handle.toLowerCase()}`;

export const isHandleKey = (key: AccountKey): boolean => key.startsWith("@");

/** The keys of the lookups that find an account. */
export const keysOf = ({ handle, id }: SocialAccount): AccountKey[] => [toHandleKey(handle), id];

/** The lower-case handle or the id, as used in the network's URLs and in Redis's keys. */
export const nameOf = (key: AccountKey): string => (isHandleKey(key) ? key.slice(1) : key);
