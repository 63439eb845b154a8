import {
  compileTransactionMessage,
  getCompiledTransactionMessageEncoder,
} from "@solana/transaction-messages";
import { getBase64EncodedWireTransaction, type Transaction } from "@solana/transactions";
import { VersionedTransaction, type VersionedMessage } from "@solana/web3.js";
import type { Instruction } from "../launchpad/instructions.ts";

/** A message's compute-unit limit, and its priority fee in lamports. */
export interface MessageBudget {
  readonly unitLimit: number;
  readonly priorityFee: bigint;
}

type KitMessage = Parameters<typeof compileTransactionMessage>[0];

/**
 * The most bytes of account data that the chain lets a transaction load. With a smaller limit,
 * anyone could make a transaction fail by enlarging one of its accounts.
 */
export const LOADED_DATA_LIMIT = 64 * 1024 * 1024;
/** The most accounts of a transaction. Source: SIMD-0385. */
const MAX_ACCOUNTS = 64;
/** Source: SIMD-0385. */
const MAX_BYTES = 4_096;
/**
 * The signature, version, header, budget with its mask, blockhash, and the counts of instructions
 * and accounts.
 */
const FIXED_BYTES = 64 + 1 + 3 + 4 + 8 + 4 + 4 + 32 + 1 + 1;
/** What an instruction takes besides its accounts and data. */
const INSTRUCTION_BYTES = 4;
const KEY_BYTES = 32;

const encoder = getCompiledTransactionMessageEncoder();

/** Encodes a message of version 1 that only `feePayer` signs. */
export function compileMessage(
  feePayer: string,
  instructions: readonly Instruction[],
  { unitLimit, priorityFee }: MessageBudget,
  blockhash: string,
): Uint8Array {
  const message = {
    feePayer: { address: feePayer },
    lifetimeConstraint: { blockhash },
    instructions,
    version: 1,
    // A limit that is not set is 0.
    config: {
      computeUnitLimit: unitLimit,
      loadedAccountsDataSizeLimit: LOADED_DATA_LIMIT,
      priorityFeeLamports: priorityFee,
    },
  };
  return Uint8Array.from(
    encoder.encode(compileTransactionMessage(message as unknown as KitMessage)),
  );
}

/** Whether a message with these instructions fits into a transaction. */
export function fitsMessage(feePayer: string, instructions: readonly Instruction[]): boolean {
  const keys = new Set([feePayer]);
  let bytes = FIXED_BYTES;
  for (const { programAddress, accounts, data } of instructions) {
    keys.add(programAddress);
    for (const { address } of accounts) keys.add(address);
    bytes += INSTRUCTION_BYTES + accounts.length + data.length;
  }
  bytes += KEY_BYTES * keys.size;
  return bytes <= MAX_BYTES && keys.size <= MAX_ACCOUNTS;
}

/** Encodes a transaction in base64. Without `signature`, it can only be simulated. */
export function toTransaction(
  message: Uint8Array,
  feePayer: string,
  signature?: Uint8Array,
): string {
  return getBase64EncodedWireTransaction({
    messageBytes: message,
    signatures: { [feePayer]: signature ?? null },
  } as unknown as Transaction);
}

/**
 * Returns the message of a base64 transaction of any version: another release may have signed the
 * transaction. Undefined if the transaction is unreadable.
 */
export function messageOf(base64: string): VersionedMessage | undefined {
  try {
    return VersionedTransaction.deserialize(Buffer.from(base64, "base64")).message;
  } catch {
    return undefined;
  }
}

/** Returns the accounts (base58) of a base64 transaction; undefined if it is unreadable. */
export function accountKeysOf(base64: string): string[] | undefined {
  return messageOf(base64)?.staticAccountKeys.map((key) => key.toBase58());
}
