import { getBase58Decoder } from "@solana/kit";
import type { MessageCompiledInstruction } from "@solana/web3.js";
import type { SandboxTransaction } from "../chain/chain.ts";

const base58 = getBase58Decoder();

/**
 * The result of `getTransaction` with encoding `json`, in the shape of a real node's response,
 * without what neither this service nor web3.js needs.
 */
export function toTransactionJson(transaction: SandboxTransaction): object {
  const { slot, blockTime, signatures, message, err, unitsConsumed } = transaction;
  const { preBalances, postBalances } = transaction;
  return {
    slot,
    blockTime,
    version: message.version,
    transaction: {
      signatures,
      message: {
        accountKeys: message.staticAccounts,
        header: message.header,
        recentBlockhash: message.lifetimeToken,
        transactionConfig: message.transactionConfig,
        instructions: message.instructions.map(toInstructionJson),
      },
    },
    meta: {
      err,
      fee: transaction.feeLamports,
      preBalances,
      postBalances,
      // Without the instructions of the message that invoked none.
      innerInstructions: transaction.innerInstructions.flatMap((list, index) =>
        list.length > 0 ? [{ index, instructions: list.map(toInstructionJson) }] : [],
      ),
      logMessages: transaction.logs,
      computeUnitsConsumed: unitsConsumed,
    },
  };
}

function toInstructionJson(instruction: MessageCompiledInstruction): object {
  const { programIdIndex, accountKeyIndexes: accounts, data } = instruction;
  return { programIdIndex, accounts, data: base58.decode(data) };
}
