import {
  compileTransactionMessage,
  getCompiledTransactionMessageEncoder,
} from "@solana/transaction-messages";
import { getBase64EncodedWireTransaction, type Transaction } from "@solana/transactions";
import { ComputeBudgetProgram, VersionedMessage, VersionedTransaction } from "@solana/web3.js";
import { fromTransactionInstruction, type Instruction } from "../../launchpad/instructions.ts";
import { priorityFee } from "../../priority-fee.ts";

/** The versions of messages that this service builds and signs. It reads both, whatever it builds. */
export type MessageVersion = "legacy" | 1;

/** What a message may use, and what it offers for that. */
export interface MessageBudget {
  readonly version: MessageVersion;
  readonly unitLimit: number;
  /** In micro-lamports per compute unit. */
  readonly price: bigint;
}

type KitMessage = Parameters<typeof compileTransactionMessage>[0];
type Address = KitMessage["feePayer"]["address"];

/** The most compute units of a transaction. */
export const MAX_UNIT_LIMIT = 1_400_000;
/**
 * The chain's limit, which legacy messages have by default. A smaller one would let anyone fail a transaction by making
 * one of its accounts larger.
 */
export const LOADED_DATA_LIMIT = 64 * 1024 * 1024;
/** Of a transaction's accounts, all of which are locked while it runs. Version 1 also limits its instructions to that. */
const MAX_ACCOUNTS = 64;
/**
 * Sizes in bytes. `fixed`: the signature and, of legacy messages, the count of signatures, the header and the blockhash; of
 * version 1 also its number, the budget with its mask, and the counts of instructions and accounts. Sources:
 * https://solana.com/docs/core/transactions/transaction-structure, SIMD-0385.
 */
const SIZES = {
  legacy: { max: 1_232, fixed: 64 + 1 + 3 + 32 },
  1: { max: 4_096, fixed: 64 + 1 + 3 + 4 + 32 + 1 + 1 + 8 + 4 + 4 },
};
const KEY_BYTES = 32;

const encoder = getCompiledTransactionMessageEncoder();

/** The instructions with which a message begins: version 1 has fields for its budget instead. */
export function budgetInstructions({ version, unitLimit, price }: MessageBudget): Instruction[] {
  if (version === 1) return [];
  return [
    ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
    ...(price > 0n ? [ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price })] : []),
  ].map(fromTransactionInstruction);
}

/** The bytes of a message that only `feePayer` signs, and that begins with its {@link budgetInstructions}. */
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
    // What is not set is 0.
    ...(version === 1 && {
      config: {
        computeUnitLimit: unitLimit,
        loadedAccountsDataSizeLimit: LOADED_DATA_LIMIT,
        priorityFeeLamports: priorityFee(price, unitLimit),
      },
    }),
  };
  return Uint8Array.from(encoder.encode(compileTransactionMessage(message as unknown as KitMessage)));
}

/** Whether a message with these instructions, of which legacy ones include its budget's, fits into a transaction. */
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

/** The bytes of a compact-u16. */
function lengthBytes(length: number): number {
  return length < 0x80 ? 1 : 2;
}

/** A transaction in base64. Without its signature it can only be simulated. */
export function toTransaction(message: Uint8Array, feePayer: string, signature?: Uint8Array): string {
  return getBase64EncodedWireTransaction({
    messageBytes: message,
    signatures: { [feePayer as Address]: signature ?? null },
  } as unknown as Transaction);
}

/** Decodes the bytes of a message with another library than builds them. Throws if they are not exactly one. */
export function readMessage(bytes: Uint8Array): VersionedMessage {
  const message = VersionedMessage.deserialize(bytes);
  // Of version 1, the library itself refuses trailing bytes.
  if (message.version !== 1 && !Buffer.from(message.serialize()).equals(bytes))
    throw new Error("the message has other bytes than its contents");
  return message;
}

/** The message of a transaction in base64; undefined if it is unreadable. */
export function messageOf(base64: string): VersionedMessage | undefined {
  try {
    return VersionedTransaction.deserialize(Buffer.from(base64, "base64")).message;
  } catch {
    return undefined;
  }
}
