import {
  TOKEN_ACCOUNT_BYTES,
  TOKEN_PROGRAM_ID,
  tokenAccountOf,
  WRAPPED_SOL_MINT,
} from "../../chain/launchpad/token-accounts.ts";
import { toKeyBytes } from "../../chain/primitives/derive-address.ts";
import type { Chain } from "./chain.ts";

/** A value of an account's data: a u8, a u64, an address in base58, or bytes. */
type Field = readonly [offset: number, value: number | bigint | string | Buffer];

/** Writes the fields over `data`, in order. What is beyond its end is left out. */
export function writeFields(data: Buffer, fields: readonly Field[]): Buffer {
  for (const [offset, value] of fields) toBytes(value).copy(data, offset);
  return data;
}

function toBytes(value: Field[1]): Buffer {
  if (typeof value === "number") return Buffer.of(value);
  if (typeof value === "string") return toKeyBytes(value);
  if (typeof value !== "bigint") return value;
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

/**
 * Creates or overwrites an account that a program owns, without a transaction. It holds its rent and
 * these lamports.
 */
export function setProgramAccount(
  chain: Chain,
  account: { address: string; owner: string; bytes: number; lamports?: bigint },
  fields: readonly Field[],
): void {
  const { address, owner, bytes, lamports = 0n } = account;
  chain.setAccount(address, {
    lamports: chain.rentExemptMinimum(bytes) + lamports,
    owner,
    data: writeFields(Buffer.alloc(bytes), fields),
  });
}

// Account layouts: https://github.com/solana-program/token

const MINT_BYTES = 82;
const MINT_DECIMALS = 44;
const MINT_IS_INITIALIZED = 45;
/** Of every coin. */
const DECIMALS = 6;

const OWNER = 32;
/** Where a token account has its amount. */
export const AMOUNT = 64;
const STATE = 108;
const IS_NATIVE = 109;
const RENT_RESERVE = 113;
const INITIALIZED = 1;

/** Creates a mint whose tokens nobody can create. */
export function setMint(chain: Chain, mint: string): void {
  setProgramAccount(chain, { address: mint, owner: TOKEN_PROGRAM_ID, bytes: MINT_BYTES }, [
    [MINT_DECIMALS, DECIMALS],
    [MINT_IS_INITIALIZED, INITIALIZED],
  ]);
}

/**
 * Adds lamports to a vault, as trades on the bonding curve do. The first ones come with the
 * rent-exempt minimum.
 */
export function addToVault(chain: Chain, vault: string, lamports: bigint): void {
  chain.setBalance(vault, (chain.balance(vault) || chain.rentExemptMinimum(0)) + lamports);
}

/** Creates or overwrites the wrapped SOL account of `owner`, which then holds `lamports`. */
export function setWrappedSol(chain: Chain, owner: string, lamports: bigint): void {
  setProgramAccount(
    chain,
    {
      address: tokenAccountOf(owner),
      owner: TOKEN_PROGRAM_ID,
      bytes: TOKEN_ACCOUNT_BYTES,
      lamports,
    },
    [
      [0, WRAPPED_SOL_MINT],
      [OWNER, owner],
      [AMOUNT, lamports],
      [STATE, INITIALIZED],
      [IS_NATIVE, 1],
      [RENT_RESERVE, chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES)],
    ],
  );
}
