import { deriveAddress, toKeyBytes } from "../primitives/derive-address.ts";
import type { Account } from "../rpc/rpc-results.ts";

export const TOKEN_PROGRAM_ID = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
export const ASSOCIATED_TOKEN_PROGRAM_ID = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
export const WRAPPED_SOL_MINT = "So11111111111111111111111111111111111111112";

/** The size of a token account. Source: the Token program's account layout. */
export const TOKEN_ACCOUNT_BYTES = 165;

/** The bytes of a token account up to the end of its amount. Source: as above. */
export const TOKEN_BYTES_TO_AMOUNT = 72;

/**
 * Whether a token account is at its address, of which {@link TOKEN_BYTES_TO_AMOUNT} bytes at least
 * were read. Until then, anybody can send lamports there.
 */
export function isTokenAccount(account: Pick<Account, "data"> | undefined): boolean {
  return (account?.data.length ?? 0) >= TOKEN_BYTES_TO_AMOUNT;
}

/**
 * The associated token account of `owner` for `mint`, a mint of the Token program; all in base58.
 */
export function tokenAccountOf(owner: string, mint = WRAPPED_SOL_MINT): string {
  const seeds = [toKeyBytes(owner), toKeyBytes(TOKEN_PROGRAM_ID), toKeyBytes(mint)];
  return deriveAddress(seeds, ASSOCIATED_TOKEN_PROGRAM_ID);
}
