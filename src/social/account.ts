import { ContractError, quote } from "../contract/errors.ts";

/** A social-network account: its id, which never changes, and the handle it goes by at the moment. */
export interface SocialAccount {
  /** Canonical decimal digits, at most 2^64-1. */
  readonly id: string;
  /** In the network's own spelling. */
  readonly handle: string;
}

const MAX_ID = 2n ** 64n - 1n;

/** What an account's id looks like; not all that do are at most 2^64-1. */
export const SOCIAL_ID_PATTERN = /^[0-9]{1,20}$/;

/** The words for what is expected. */
export const SOCIAL_ID_EXPECTED = `1 to 20 decimal digits, at most ${MAX_ID}`;

/**
 * Reads an account's id: 1 to 20 decimal digits, at most 2^64-1. Leading zeros are dropped, because
 * addresses are derived from the digits and `007` would be an address that nobody owns.
 * Undefined: it is no id.
 */
export function toSocialId(text: string): string | undefined {
  if (!SOCIAL_ID_PATTERN.test(text)) return undefined;
  const id = BigInt(text);
  return id <= MAX_ID ? id.toString() : undefined;
}

/** INVALID_SOCIAL_ID, which says what came in place of an id. */
export function invalidSocialId(value: unknown): ContractError {
  return new ContractError("INVALID_SOCIAL_ID", {
    message: `socialId must be a JSON string of ${SOCIAL_ID_EXPECTED}; got ${quote(value)}. The lookup of a handle gives it.`,
  });
}
