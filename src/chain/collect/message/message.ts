import {
  compileTransactionMessage,
  getCompiledTransactionMessageEncoder,
} from "@solana/transaction-messages";
import { getBase64EncodedWireTransaction, type Transaction } from "@solana/transactions";
import { ComputeBudgetProgram, VersionedMessage, VersionedTransaction } from "@solana/web3.js";
import { fromTransactionInstruction, type Instruction } from "../../launchpad/instructions.ts";
import { priorityFee } from "../../priority-fee.ts";

/** The message versions that this service builds, signs and reads. */
export type MessageVersion = "legacy" | 1;

/** A message's version, compute-unit limit and price. */
export interface MessageBudget {
  readonly version: MessageVersion;
  readonly unitLimit: number;
  /** In micro-lamports per compute unit. */
  readonly price: bigint;
}

type KitMessage = Parameters<typeof compileTransactionMessage>[0];
type Address = KitMessage["feePayer"]["address"];

/** The most compute units that a transaction may request. */
export const MAX_UNIT_LIMIT = 1_400_000;
/**
 * The most bytes of account data that the chain lets a transaction load; the default of legacy
 * messages. With a smaller limit, anyone could make a transaction fail by enlarging one of its
 * accounts.
 */
export const LOADED_DATA_LIMIT = 64 * 1024 * 1024;
/**
 * The most accounts that a transaction may lock. Version 1 also allows at most this many
 * instructions.
 */
const MAX_ACCOUNTS = 64;
/**
 * Sizes in bytes. `fixed` covers the signature, header and blockhash; for legacy also the count of
 * signatures; for version 1 also the version, the budget with its mask, and the counts of
 * instructions and accounts. Sources:
 * https://solana.com/docs/core/transactions/transaction-structure, SIMD-0385.
 */
const SIZES = {
  legacy: { max: 1_232, fixed: 64 + 1 + 3 + 32 },
  1: { max: 4_096, fixed: 64 + 1 + 3 + 4 + 32 + 1 + 1 + 8 + 4 + 4 },
};
const KEY_BYTES = 32;

const encoder = getCompiledTransactionMessageEncoder();

/**
 * Returns the instructions that begin a legacy message; version 1 has fields for the budget
 * instead.
 */
export function budgetInstructions({ version, unitLimit, price }: MessageBudget): Instruction[] {
  if (version === 1) return [];
  return [
    ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
    ...(price > 0n ? [ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price })] : []),
  ].map(fromTransactionInstruction);
}

/**
 * Encodes a message that only `feePayer` signs. `instructions` must begin with the {@link
 * budgetInstructions}.
 */
export function compileMessage(
  feePayer: string,
  instructions: readonly Instruction[],
  { version, unitLimit, price }: MessageBudget,
  blockhash: string,
): Uint8Array {
  const message = {
    feePayer: { address: feePayer },
    lifetimeConstraint: { blockhash },
    instructions: instructions.map(({ program, accounts, data }) => ({
      programAddress: program,
      accounts: accounts.map(({ address, isSigner, isWritable }) => ({
        address,
        role: (isSigner ? 2 : 0) + (isWritable ? 1 : 0),
      })),
      data,
    })),
    version,
    // In version 1, a limit that is not set is 0.
    ...(version === 1 && {
      config: {
        computeUnitLimit: unitLimit,
        loadedAccountsDataSizeLimit: LOADED_DATA_LIMIT,
        priorityFeeLamports: priorityFee(price, unitLimit),
      },
    }),
  };
  return Uint8Array.from(
    encoder.encode(compileTransactionMessage(message as unknown as KitMessage)),
  );
}

/**
 * Whether a message fits into a transaction. `instructions` include the {@link budgetInstructions}.
 */
export function fitsMessage(
  feePayer: string,
  instructions: readonly Instruction[],
  version: MessageVersion,
): boolean {
  const { max, fixed } = SIZES[version];
  const isLegacy = version === "legacy";
  const keys = new Set([feePayer]);
  let bytes = fixed + (isLegacy ? lengthBytes(instructions.length) : 0);
  for (const { program, accounts, data } of instructions) {
    keys.add(program);
    for (const { address } of accounts) keys.add(address);
    const lengths = isLegacy ? 1 + lengthBytes(accounts.length) + lengthBytes(data.length) : 4;
    bytes += lengths + accounts.length + data.length;
  }
  bytes += KEY_BYTES * keys.size + (isLegacy ? lengthBytes(keys.size) : 0);
  return bytes <= max && keys.size <= MAX_ACCOUNTS && instructions.length <= MAX_ACCOUNTS;
}

/** Returns how many bytes a length takes as a compact-u16. */
function lengthBytes(length: number): number {
  return length < 0x80 ? 1 : 2;
}

/** Encodes a transaction in base64. Without `signature`, it can only be simulated. */
export function toTransaction(
  message: Uint8Array,
  feePayer: string,
  signature?: Uint8Array,
): string {
  return getBase64EncodedWireTransaction({
    messageBytes: message,
    signatures: { [feePayer as Address]: signature ?? null },
  } as unknown as Transaction);
}

/**
 * Decodes a message, with a library other than the encoder's. Throws if the bytes are not exactly
 * one message.
 */
export function readMessage(bytes: Uint8Array): VersionedMessage {
  const message = VersionedMessage.deserialize(bytes);
  // For version 1, the library itself refuses trailing bytes.
  if (message.version !== 1 && !Buffer.from(message.serialize()).equals(bytes))
    throw new Error("the message has other bytes than its contents");
  return message;
}

/** Returns the message of a base64 transaction; undefined if the transaction is unreadable. */
export function messageOf(base64: string): VersionedMessage | undefined {
  try {
    return VersionedTransaction.deserialize(Buffer.from(base64, "base64")).message;
  } catch {
    return undefined;
  }
}
