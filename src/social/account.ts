/** A social-network account: its id, which never changes, and the handle it goes by at the moment. */
export interface SocialAccount {
  /** Canonical decimal digits, at most 2^64-1. */
  readonly id: string;
  /** In the network's own spelling. */
  readonly handle: string;
}

const MAX_ID = 2n ** 64n - 1n;

/**
 * Reads an account's id: 1 to 20 decimal digits, at most 2^64-1. Leading zeros are dropped, because
 * addresses are derived from the digits and `007` would be an address that nobody owns.
 * Undefined: it is no id.
 */
export function toSocialId(text: string): string | undefined {
  if (!/^[0-9]{1,20}$/.test(text)) return undefined;
  const id = BigInt(text);
  return id <= MAX_ID ? id.toString() : undefined;
}
