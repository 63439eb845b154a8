import { toBase58 } from "../chain/base58.ts";
import type { InnerInstruction, LandedTransaction } from "../chain/chain.ts";
import type { Message } from "../chain/transactions.ts";

export type TransactionEncoding = "json" | "jsonParsed" | "base58" | "base64";

/** What `getTransaction` answers, in the shape of the real nodes; `version` only for who asks for versions. */
export function toTransactionJson(
  landed: LandedTransaction,
  encoding: TransactionEncoding,
  withVersion: boolean,
): object {
  const { slot, blockTime, message } = landed;
  return {
    slot,
    blockTime,
    transaction: encodeTransaction(landed, encoding),
    meta: toMetaJson(landed, encoding === "jsonParsed" ? namedInstruction(message) : numberedInstruction),
    ...(withVersion && { version: message.version }),
  };
}

function encodeTransaction(landed: LandedTransaction, encoding: TransactionEncoding): unknown {
  const { bytes, signatures, message } = landed;
  if (encoding === "base64") return [Buffer.from(bytes).toString("base64"), encoding];
  if (encoding === "base58") return [toBase58(bytes), encoding];
  const parsed = encoding === "jsonParsed";
  const toInstructionJson = parsed ? namedInstruction(message) : numberedInstruction;
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header;
  return {
    signatures,
    message: {
      accountKeys: parsed ? message.staticAccounts.map(describeAccount(message)) : message.staticAccounts,
      ...(!parsed && {
        header: {
          numRequiredSignatures: numSignerAccounts,
          numReadonlySignedAccounts: numReadonlySignerAccounts,
          numReadonlyUnsignedAccounts: numReadonlyNonSignerAccounts,
        },
      }),
      recentBlockhash: message.lifetimeToken,
      instructions: message.instructions.map((instruction) =>
        toInstructionJson({
          programIdIndex: instruction.programAddressIndex,
          accounts: instruction.accountIndices ?? [],
          data: Uint8Array.from(instruction.data ?? []),
          stackHeight: 1,
        }),
      ),
      ...(message.version === 0 && { addressTableLookups: [] }),
    },
  };
}

function toMetaJson(
  landed: LandedTransaction,
  toInstructionJson: (inner: InnerInstruction) => object,
): object {
  return {
    err: landed.err,
    status: landed.err === null ? { Ok: null } : { Err: landed.err },
    fee: landed.feeLamports,
    preBalances: landed.preBalances,
    postBalances: landed.postBalances,
    innerInstructions: landed.innerInstructions.flatMap((list, index) =>
      list.length > 0 ? [{ index, instructions: list.map(toInstructionJson) }] : [],
    ),
    logMessages: landed.logs,
    preTokenBalances: [],
    postTokenBalances: [],
    rewards: [],
    loadedAddresses: { writable: [], readonly: [] },
    computeUnitsConsumed: landed.unitsConsumed,
  };
}

function numberedInstruction({ programIdIndex, accounts, data, stackHeight }: InnerInstruction): object {
  return { programIdIndex, accounts, data: toBase58(data), stackHeight };
}

/** As the real nodes give an instruction of a program that they can't parse; here, of every program. */
function namedInstruction({ staticAccounts }: Message): (instruction: InnerInstruction) => object {
  return ({ programIdIndex, accounts, data, stackHeight }) => ({
    programId: staticAccounts[programIdIndex],
    accounts: accounts.map((index) => staticAccounts[index]),
    data: toBase58(data),
    stackHeight,
  });
}

function describeAccount({ header, staticAccounts }: Message): (pubkey: string, index: number) => object {
  const signers = header.numSignerAccounts;
  return (pubkey, index) => ({
    pubkey,
    signer: index < signers,
    writable:
      index < signers
        ? index < signers - header.numReadonlySignerAccounts
        : index < staticAccounts.length - header.numReadonlyNonSignerAccounts,
    source: "transaction",
  });
}
