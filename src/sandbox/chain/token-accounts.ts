import { PublicKey, SystemProgram, TransactionInstruction } from "@solana/web3.js";
import {
  ASSOCIATED_TOKEN_PROGRAM_ID,
  TOKEN_ACCOUNT_BYTES,
  TOKEN_PROGRAM_ID,
  tokenAccountOf,
  WRAPPED_SOL_MINT,
} from "../../chain/launchpad/token-accounts.ts";
import type { ChainAccount } from "./chain.ts";

// Account layouts and instruction numbers: https://github.com/solana-program/token,
// https://github.com/solana-program/associated-token-account

export const MINT_BYTES = 82;

export const WRAPPED_SOL = new PublicKey(WRAPPED_SOL_MINT);
const TOKEN_PROGRAM = new PublicKey(TOKEN_PROGRAM_ID);

const INITIALIZED = 1;
const SOME = 1;

/** Instruction numbers: two of the Token program, then one of the Associated Token program. */
const MINT_TO = 7;
const SYNC_NATIVE = 17;
const CREATE_IDEMPOTENT = 1;

/**
 * A token account of `owner` that holds `amount` in the smallest unit of `mint`. The account holds
 * `reserve` lamports for rent and, if `mint` is wrapped SOL, also `amount` lamports.
 */
export function toTokenAccount(
  mint: PublicKey,
  owner: PublicKey,
  amount: bigint,
  reserve: bigint,
): Omit<ChainAccount, "executable"> {
  const isNative = mint.equals(WRAPPED_SOL);
  const data = Buffer.alloc(TOKEN_ACCOUNT_BYTES);
  mint.toBuffer().copy(data, 0);
  owner.toBuffer().copy(data, 32);
  data.writeBigUInt64LE(amount, 64);
  data.writeUInt8(INITIALIZED, 108);
  if (isNative) {
    data.writeUInt32LE(SOME, 109);
    data.writeBigUInt64LE(reserve, 113);
  }
  return { lamports: isNative ? reserve + amount : reserve, owner: TOKEN_PROGRAM_ID, data };
}

/** A mint whose tokens only `authority` can create. */
export function toMintAccount(
  authority: PublicKey,
  decimals: number,
  reserve: bigint,
): Omit<ChainAccount, "executable"> {
  const data = Buffer.alloc(MINT_BYTES);
  data.writeUInt32LE(SOME, 0);
  authority.toBuffer().copy(data, 4);
  data.writeUInt8(decimals, 44);
  data.writeUInt8(INITIALIZED, 45);
  return { lamports: reserve, owner: TOKEN_PROGRAM_ID, data };
}

/**
 * Adds `amount` to the token account of `owner`, in the smallest unit of `mint`. If the account is
 * missing, `payer` creates it. `payer` wraps its own lamports, or creates tokens as the authority
 * of `mint`.
 */
export function depositTokens(
  payer: PublicKey,
  mint: PublicKey,
  owner: PublicKey,
  amount: bigint,
): TransactionInstruction[] {
  const account = new PublicKey(tokenAccountOf(owner.toBase58(), mint.toBase58()));
  const create = new TransactionInstruction({
    programId: new PublicKey(ASSOCIATED_TOKEN_PROGRAM_ID),
    keys: [
      { pubkey: payer, isSigner: true, isWritable: true },
      { pubkey: account, isSigner: false, isWritable: true },
      { pubkey: owner, isSigner: false, isWritable: false },
      { pubkey: mint, isSigner: false, isWritable: false },
      { pubkey: SystemProgram.programId, isSigner: false, isWritable: false },
      { pubkey: TOKEN_PROGRAM, isSigner: false, isWritable: false },
    ],
    data: Buffer.of(CREATE_IDEMPOTENT),
  });
  if (!mint.equals(WRAPPED_SOL)) return [create, mintTo(mint, account, payer, amount)];
  return [
    create,
    SystemProgram.transfer({ fromPubkey: payer, toPubkey: account, lamports: amount }),
    new TransactionInstruction({
      programId: TOKEN_PROGRAM,
      keys: [{ pubkey: account, isSigner: false, isWritable: true }],
      data: Buffer.of(SYNC_NATIVE),
    }),
  ];
}

function mintTo(mint: PublicKey, account: PublicKey, authority: PublicKey, amount: bigint) {
  const data = Buffer.alloc(9);
  data.writeUInt8(MINT_TO, 0);
  data.writeBigUInt64LE(amount, 1);
  return new TransactionInstruction({
    programId: TOKEN_PROGRAM,
    keys: [
      { pubkey: mint, isSigner: false, isWritable: true },
      { pubkey: account, isSigner: false, isWritable: true },
      { pubkey: authority, isSigner: true, isWritable: false },
    ],
    data,
  });
}
