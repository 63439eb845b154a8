import { ContractError, quote } from "./contract-error.ts";

const MAX_ID = 2n ** 64n - 1n;

/** The syntax of an account's id. {@link toSocialId} also checks the id's range. */
const SOCIAL_ID_PATTERN = /^[0-9]{1,20}$/;

/** The expected format, for messages. */
export const SOCIAL_ID_EXPECTED = `1 to 20 decimal digits, not zero, at most ${MAX_ID}`;

/**
 * Parses an id from 1 to 2^64-1; returns undefined for anything else. Drops leading zeros, because
 * addresses are derived from the digits: nobody owns the address of `007`, nor that of 0.
 */
export function toSocialId(text: string): string | undefined {
  if (!SOCIAL_ID_PATTERN.test(text)) return undefined;
  const id = BigInt(text);
  return id > 0n && id <= MAX_ID ? id.toString() : undefined;
}

/** Fails a collect whose caller expects another address for the id. */
export function wrongAddress(socialId: string, address: unknown): ContractError {
  return new ContractError("INVALID_SOCIAL_ID", {
    message: `\`address\` is not the address of \`socialId\` ${socialId}. Received ${quote(address)}. Nothing was moved.`,
  });
}

export function invalidSocialId(value: unknown): ContractError {
  const problem =
    value === undefined
      ? "is missing"
      : `must be a string of ${SOCIAL_ID_EXPECTED}. Received ${quote(value)}`;
  return new ContractError("INVALID_SOCIAL_ID", {
    message: `\`socialId\` ${problem}. A lookup returns it.`,
  });
}
