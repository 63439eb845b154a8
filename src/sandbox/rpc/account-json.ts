import { z } from "zod";
import type { ChainAccount } from "../chain/chain.ts";

/** Required, because a real node defaults to base58, which no client here uses. */
export const accountEncoding = z.literal("base64");

export const dataSlice = z
  .object({ offset: z.int().nonnegative(), length: z.int().nonnegative() })
  .nullish();

/** The rent epoch of a rent-exempt account: 2^64 - 1. All accounts are rent-exempt. */
const RENT_EXEMPT = 2n ** 64n - 1n;

/**
 * An account in the shape of a real node's response, with all of its data unless a `slice` is
 * given.
 */
export function toAccountJson(
  account: ChainAccount | null,
  slice?: z.infer<typeof dataSlice>,
): object | null {
  if (!account) return null;
  const { offset, length } = slice ?? { offset: 0, length: account.data.length };
  const data = Buffer.from(account.data.subarray(offset, offset + length));
  return {
    lamports: account.lamports,
    owner: account.owner,
    data: [data.toString("base64"), "base64"],
    executable: account.executable,
    rentEpoch: RENT_EXEMPT,
    space: account.data.length,
  };
}
