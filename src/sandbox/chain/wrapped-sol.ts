import type { PublicKey } from "@solana/web3.js";
import { SystemProgram, TransactionInstruction } from "@solana/web3.js";
import {
  ASSOCIATED_TOKEN_PROGRAM_ID,
  TOKEN_ACCOUNT_BYTES,
  TOKEN_PROGRAM_ID,
  WRAPPED_SOL_MINT,
  wrappedSolAccountOf,
} from "../../chain/token-accounts.ts";
import type { ChainAccount } from "./chain.ts";

// Account layout and instruction numbers: https://github.com/solana-program/token, https://github.com/solana-program/associated-token-account

const INITIALIZED = 1;
const SOME = 1;

/** Instruction numbers: of the Token program, then of the Associated Token program. */
const SYNC_NATIVE = 17;
const CREATE_IDEMPOTENT = 1;

/** A wrapped SOL account of `owner` with `amount` lamports wrapped, on top of a rent-exempt `reserve` in lamports. */
export function toWrappedSolAccount(
  owner: PublicKey,
  amount: bigint,
  reserve: bigint,
): Omit<ChainAccount, "executable"> {
  const data = Buffer.alloc(TOKEN_ACCOUNT_BYTES);
  WRAPPED_SOL_MINT.toBuffer().copy(data, 0);
  owner.toBuffer().copy(data, 32);
  data.writeBigUInt64LE(amount, 64);
  data.writeUInt8(INITIALIZED, 108);
  data.writeUInt32LE(SOME, 109);
  data.writeBigUInt64LE(reserve, 113);
  return { lamports: reserve + amount, owner: TOKEN_PROGRAM_ID.toBase58(), data };
}

/** Wraps lamports of `payer` in the wrapped SOL account of `owner`. If the account is missing, `payer` creates it. */
export function wrapSol(payer: PublicKey, owner: PublicKey, lamports: bigint): TransactionInstruction[] {
  const account = wrappedSolAccountOf(owner);
  return [
    new TransactionInstruction({
      programId: ASSOCIATED_TOKEN_PROGRAM_ID,
      keys: [
        { pubkey: payer, isSigner: true, isWritable: true },
        { pubkey: account, isSigner: false, isWritable: true },
        { pubkey: owner, isSigner: false, isWritable: false },
        { pubkey: WRAPPED_SOL_MINT, isSigner: false, isWritable: false },
        { pubkey: SystemProgram.programId, isSigner: false, isWritable: false },
        { pubkey: TOKEN_PROGRAM_ID, isSigner: false, isWritable: false },
      ],
      data: Buffer.of(CREATE_IDEMPOTENT),
    }),
    SystemProgram.transfer({ fromPubkey: payer, toPubkey: account, lamports }),
    new TransactionInstruction({
      programId: TOKEN_PROGRAM_ID,
      keys: [{ pubkey: account, isSigner: false, isWritable: true }],
      data: Buffer.of(SYNC_NATIVE),
    }),
  ];
}
