import { deriveAddress, toKeyBytes } from "../primitives/derive-address.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import type { Account } from "../rpc/rpc-results.ts";

export const TOKEN_PROGRAM_ID = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
export const ASSOCIATED_TOKEN_PROGRAM_ID = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
export const WRAPPED_SOL_MINT = "So11111111111111111111111111111111111111112";

/** The size of a token account. Source: the Token program's account layout. */
export const TOKEN_ACCOUNT_BYTES = 165;

/** A token account's amount, a little-endian u64. Source: the Token program's account layout. */
const AMOUNT_OFFSET = 64;
/** The bytes of a token account up to the end of its amount. */
export const TOKEN_BYTES_TO_AMOUNT = AMOUNT_OFFSET + 8;

/**
 * An account's wrapped SOL; undefined if the account is missing or shorter than {@link
 * TOKEN_BYTES_TO_AMOUNT}.
 */
export function readWrappedSol(account: Pick<Account, "data"> | undefined): Lamports | undefined {
  if (!account || account.data.length < TOKEN_BYTES_TO_AMOUNT) return undefined;
  return toLamports(account.data.readBigUInt64LE(AMOUNT_OFFSET));
}

/**
 * The associated token account of `owner` for `mint`, a mint of the Token program; all in base58.
 */
export function tokenAccountOf(owner: string, mint = WRAPPED_SOL_MINT): string {
  const seeds = [toKeyBytes(owner), toKeyBytes(TOKEN_PROGRAM_ID), toKeyBytes(mint)];
  return deriveAddress(seeds, ASSOCIATED_TOKEN_PROGRAM_ID);
}
