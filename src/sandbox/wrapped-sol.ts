import { PublicKey, SystemProgram, TransactionInstruction } from "@solana/web3.js";
import type { ChainAccount } from "./chain.ts";

// https://github.com/solana-program/token, https://github.com/solana-program/associated-token-account
const WRAPPED_SOL_MINT = new PublicKey("So11111111111111111111111111111111111111112");
const TOKEN_PROGRAM = new PublicKey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
const ASSOCIATED_TOKEN_PROGRAM = new PublicKey("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");

/** Bytes of data in a token account. */
export const TOKEN_ACCOUNT_BYTES = 165;
const INITIALIZED = 1;
const SOME = 1;

/** Instructions by their numbers in those programs. */
const SYNC_NATIVE = 17;
const CREATE_IDEMPOTENT = 1;

/** The associated token account of `owner` for wrapped SOL. */
export function wrappedSolAccountOf(owner: PublicKey): PublicKey {
  const seeds = [owner.toBuffer(), TOKEN_PROGRAM.toBuffer(), WRAPPED_SOL_MINT.toBuffer()];
  return PublicKey.findProgramAddressSync(seeds, ASSOCIATED_TOKEN_PROGRAM)[0];
}

/** Such an account with `amount` lamports wrapped in it, on top of the `reserve` that exempts it from rent. */
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
  return { lamports: reserve + amount, owner: TOKEN_PROGRAM.toBase58(), data };
}

/** Has `payer` wrap lamports in that account of `owner`, which it pays for when there is none yet. */
export function wrapSol(payer: PublicKey, owner: PublicKey, lamports: bigint): TransactionInstruction[] {
  const account = wrappedSolAccountOf(owner);
  return [
    new TransactionInstruction({
      programId: ASSOCIATED_TOKEN_PROGRAM,
      keys: [
        { pubkey: payer, isSigner: true, isWritable: true },
        { pubkey: account, isSigner: false, isWritable: true },
        { pubkey: owner, isSigner: false, isWritable: false },
        { pubkey: WRAPPED_SOL_MINT, isSigner: false, isWritable: false },
        { pubkey: SystemProgram.programId, isSigner: false, isWritable: false },
        { pubkey: TOKEN_PROGRAM, isSigner: false, isWritable: false },
      ],
      data: Buffer.of(CREATE_IDEMPOTENT),
    }),
    SystemProgram.transfer({ fromPubkey: payer, toPubkey: account, lamports }),
    new TransactionInstruction({
      programId: TOKEN_PROGRAM,
      keys: [{ pubkey: account, isSigner: false, isWritable: true }],
      data: Buffer.of(SYNC_NATIVE),
    }),
  ];
}
