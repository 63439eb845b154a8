import {
  compileTransactionMessage,
  getCompiledTransactionMessageEncoder,
} from "@solana/transaction-messages";
import {
  ComputeBudgetInstruction,
  ComputeBudgetProgram,
  PublicKey,
  TransactionMessage,
  type TransactionInstruction,
} from "@solana/web3.js";

const BLOCKHASH = PublicKey.default.toBase58();
/** The chain's limit of loaded account data. */
export const LOADED_DATA_LIMIT = 64 * 1024 * 1024;

/** The bytes of a message with these instructions. */
export type Compile = (payer: PublicKey, ...instructions: TransactionInstruction[]) => Uint8Array;

export const compileLegacy: Compile = (payerKey, ...instructions) =>
  new TransactionMessage({ payerKey, recentBlockhash: BLOCKHASH, instructions })
    .compileToLegacyMessage()
    .serialize();

export const compileVersion0: Compile = (payerKey, ...instructions) =>
  new TransactionMessage({ payerKey, recentBlockhash: BLOCKHASH, instructions })
    .compileToV0Message()
    .serialize();

/** Instructions of the compute budget program become the message's configuration. */
export const compileVersion1: Compile = (payer, ...instructions) => {
  const isOfBudget = ({ programId }: TransactionInstruction) =>
    programId.equals(ComputeBudgetProgram.programId);
  return compileWithConfig(
    toConfig(instructions.filter(isOfBudget)),
    payer,
    ...instructions.filter((each) => !isOfBudget(each)),
  );
};

/**
 * A message of version 1 with the chain's limit of loaded data. What else `config` leaves out is
 * not set.
 */
export function compileWithConfig(
  { blockhash = BLOCKHASH, ...config }: { blockhash?: string; [name: string]: unknown },
  payer: PublicKey,
  ...instructions: TransactionInstruction[]
): Uint8Array {
  const message: any = {
    version: 1,
    config: { loadedAccountsDataSizeLimit: LOADED_DATA_LIMIT, ...config },
    feePayer: { address: payer.toBase58() },
    lifetimeConstraint: { blockhash, lastValidBlockHeight: 0n },
    instructions: instructions.map(({ programId, keys, data }) => ({
      programAddress: programId.toBase58(),
      accounts: keys.map(({ pubkey, isSigner, isWritable }) => ({
        address: pubkey.toBase58(),
        role: Number(isSigner) * 2 + Number(isWritable),
      })),
      data,
    })),
  };
  return Uint8Array.from(
    getCompiledTransactionMessageEncoder().encode(compileTransactionMessage(message)),
  );
}

function toConfig(budget: readonly TransactionInstruction[]) {
  let computeUnitLimit: number | undefined;
  let price = 0n;
  let heapSize: number | undefined;
  for (const instruction of budget) {
    const type = ComputeBudgetInstruction.decodeInstructionType(instruction);
    if (type === "SetComputeUnitLimit")
      computeUnitLimit = ComputeBudgetInstruction.decodeSetComputeUnitLimit(instruction).units;
    else if (type === "SetComputeUnitPrice")
      price = BigInt(ComputeBudgetInstruction.decodeSetComputeUnitPrice(instruction).microLamports);
    else heapSize = ComputeBudgetInstruction.decodeRequestHeapFrame(instruction).bytes;
  }
  const priorityFeeLamports = (price * BigInt(computeUnitLimit ?? 0) + 999_999n) / 1_000_000n;
  return { computeUnitLimit, priorityFeeLamports, heapSize };
}
