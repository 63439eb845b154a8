import {
  getBase58Decoder,
  transactionConfigMaskHasComputeUnitLimit,
  transactionConfigMaskHasHeapSize,
  transactionConfigMaskHasLoadedAccountsDataSizeLimit,
  transactionConfigMaskHasPriorityFee,
} from "@solana/kit";
import type { InnerInstruction, SandboxTransaction } from "../chain/chain.ts";

const base58 = getBase58Decoder();

/** The result of `getTransaction` with encoding `json`, in the shape of a real node's response. */
export function toTransactionJson(transaction: SandboxTransaction): object {
  const { slot, blockTime, signatures, message } = transaction;
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } =
    message.header;
  return {
    slot,
    blockTime,
    transaction: {
      signatures,
      message: {
        accountKeys: message.staticAccounts,
        header: {
          numRequiredSignatures: numSignerAccounts,
          numReadonlySignedAccounts: numReadonlySignerAccounts,
          numReadonlyUnsignedAccounts: numReadonlyNonSignerAccounts,
        },
        recentBlockhash: message.lifetimeToken,
        ...(message.config && { transactionConfig: toConfigJson(message.config) }),
        instructions: message.instructions.map((instruction) =>
          toInstructionJson({
            programIdIndex: instruction.programAddressIndex,
            accounts: instruction.accountIndices ?? [],
            data: Uint8Array.from(instruction.data ?? []),
            stackHeight: 1,
          }),
        ),
      },
    },
    meta: toMetaJson(transaction),
  };
}

/**
 * Converts a message's config. The members are in the order of the values; a value that is not set
 * is null.
 */
function toConfigJson({
  configMask,
  configValues,
}: NonNullable<SandboxTransaction["message"]["config"]>) {
  const values = [...configValues];
  const take = (isSet: boolean) => (isSet ? (values.shift()?.value ?? null) : null);
  return {
    priorityFee: take(transactionConfigMaskHasPriorityFee(configMask)),
    computeUnitLimit: take(transactionConfigMaskHasComputeUnitLimit(configMask)),
    loadedAccountsDataSizeLimit: take(
      transactionConfigMaskHasLoadedAccountsDataSizeLimit(configMask),
    ),
    heapSize: take(transactionConfigMaskHasHeapSize(configMask)),
  };
}

function toMetaJson(transaction: SandboxTransaction): object {
  return {
    err: transaction.err,
    status: toStatusJson(transaction),
    fee: transaction.feeLamports,
    ...(transaction.preBalances.length > 0 && {
      preBalances: transaction.preBalances,
      postBalances: transaction.postBalances,
    }),
    innerInstructions: toInnerInstructionsJson(transaction.innerInstructions),
    logMessages: transaction.logs,
    preTokenBalances: [],
    postTokenBalances: [],
    rewards: [],
    loadedAddresses: { writable: [], readonly: [] },
    computeUnitsConsumed: transaction.unitsConsumed,
  };
}

/** Leaves out the instructions of a message that invoked none. */
export function toInnerInstructionsJson(
  lists: SandboxTransaction["innerInstructions"],
): { index: number; instructions: object[] }[] {
  return lists.flatMap((list, index) =>
    list.length > 0 ? [{ index, instructions: list.map(toInstructionJson) }] : [],
  );
}

function toInstructionJson({
  programIdIndex,
  accounts,
  data,
  stackHeight,
}: InnerInstruction): object {
  return { programIdIndex, accounts, data: base58.decode(data), stackHeight };
}

/** The deprecated field `status`, which real nodes still send beside `err`. */
export function toStatusJson({ err }: SandboxTransaction): object {
  return err === null ? { Ok: null } : { Err: err };
}
