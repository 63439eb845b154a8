import { ContractError, quote } from "./contract-error.ts";

const MAX_ID = 2n ** 64n - 1n;

/** The form of an account's id. A match can still be above the largest id, 2^64-1. */
export const SOCIAL_ID_PATTERN = /^[0-9]{1,20}$/;

/** The words for the expected form in messages. */
export const SOCIAL_ID_EXPECTED = `1 to 20 decimal digits, at most ${MAX_ID}`;

/**
 * Reads an account's id: 1 to 20 decimal digits, at most 2^64-1. Drops leading zeros, because addresses are
 * derived from the digits and `007` would be an address that nobody owns. Undefined: not an id.
 */
export function toSocialId(text: string): string | undefined {
  if (!SOCIAL_ID_PATTERN.test(text)) return undefined;
  const id = BigInt(text);
  return id <= MAX_ID ? id.toString() : undefined;
}

/** INVALID_SOCIAL_ID, with the expected form and the received value. */
export function invalidSocialId(received: unknown): ContractError {
  const problem =
    received === undefined
      ? "is missing"
      : `must be a JSON string of ${SOCIAL_ID_EXPECTED}. Received ${quote(received)}`;
  return new ContractError("INVALID_SOCIAL_ID", {
    message: `\`socialId\` ${problem}. Get it from GET /wallet/lookup.`,
  });
}
