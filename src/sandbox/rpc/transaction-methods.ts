import { z } from "zod";
import { toError } from "../../observability/thrown.ts";
import type { Chain, SandboxTransaction } from "../chain/chain.ts";
import type { Commitment } from "../chain/slots.ts";
import { decodeTransaction } from "../chain/wire-transaction.ts";
import type { WireTransaction } from "../chain/wire-transaction.ts";
import { accountEncoding, toAccountJson } from "./account-json.ts";
import { invalidParams, JsonRpcError, method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import {
  addressParam,
  commitmentOf,
  configFields,
  signatureParam,
  slotFor,
  withContext,
} from "./params.ts";
import type { ConfigParam } from "./params.ts";
import { toInnerInstructionsJson, toStatusJson, toTransactionJson } from "./transaction-json.ts";

const MAX_STATUSES = 256;
/**
 * The length of a node's status cache; only `searchTransactionHistory` finds older transactions.
 */
const STATUS_CACHE_SLOTS = 300;
const MAX_SIGNATURES_FOR_ADDRESS = 1000;

// The sandbox's clients send only the values given as literals; any other value fails with -32602.
const base64 = z.literal("base64");
const simulateConfig = z.object({
  ...configFields,
  encoding: base64,
  sigVerify: z.literal(false).nullish(),
  replaceRecentBlockhash: z.literal(true),
  innerInstructions: z.boolean().nullish(),
  accounts: z.object({ encoding: accountEncoding, addresses: z.array(addressParam) }).nullish(),
});
const sendConfig = z.object({ encoding: base64, skipPreflight: z.literal(true) });
const statusesConfig = z.object({ searchTransactionHistory: z.boolean().nullish() }).nullish();
const transactionConfig = z
  .object({
    encoding: z.literal("json").nullish(),
    commitment: configFields.commitment,
    maxSupportedTransactionVersion: z.int().nonnegative().nullish(),
  })
  .nullish();
const signaturesConfig = z
  .object({
    ...configFields,
    limit: z.int().min(1).max(MAX_SIGNATURES_FOR_ADDRESS).nullish(),
    before: signatureParam.nullish(),
    until: signatureParam.nullish(),
  })
  .nullish();

/** The JSON-RPC methods that simulate, send and look up transactions. */
export function createTransactionMethods(chain: Chain): Methods {
  function commitmentReached({ slot }: SandboxTransaction): Commitment {
    if (slot <= chain.slot("finalized")) return "finalized";
    return slot <= chain.slot("confirmed") ? "confirmed" : "processed";
  }

  /**
   * The latest slot visible to methods that read history. Rejects `processed`, as a real node does.
   */
  function historySlot(config: ConfigParam): number {
    if (config?.commitment === "processed") {
      throw invalidParams("Method does not support commitment below `confirmed`");
    }
    return slotFor(chain, config);
  }

  return {
    simulateTransaction: method(z.tuple([z.string(), simulateConfig]), ([base64, config]) => {
      const slot = slotFor(chain, config);
      const transaction = decodeParam(base64);
      const addresses = config.accounts?.addresses ?? [];
      const maxAddresses = transaction.message.staticAccounts.length;
      if (addresses.length > maxAddresses)
        throw invalidParams(`Too many accounts provided; max ${maxAddresses}`);
      const { err, logs, unitsConsumed, accounts, innerInstructions } = chain.simulate(transaction);
      const afterwards = addresses.map((address) =>
        err === null ? toAccountJson(accounts.get(address) ?? chain.account(address)) : null,
      );
      return withContext(slot, {
        err,
        logs,
        unitsConsumed,
        accounts: config.accounts ? afterwards : null,
        preBalances: transaction.message.staticAccounts.map((key) => Number(chain.balance(key))),
        returnData: null,
        // A real node parses those of programs that it knows.
        innerInstructions: config.innerInstructions
          ? toInnerInstructionsJson(innerInstructions)
          : null,
        // Only reported: the simulation accepts any blockhash, so the transaction's is not
        // replaced.
        replacementBlockhash: chain.latestBlockhash(commitmentOf(config)),
      });
    }),

    sendTransaction: method(z.tuple([z.string(), sendConfig]), ([base64]) => {
      const transaction = decodeParam(base64);
      // Without preflight a real node checks nothing, not even signatures: callers poll
      // `getSignatureStatuses`.
      chain.send(transaction);
      return transaction.signature;
    }),

    getSignatureStatuses: method(
      z.tuple([z.array(signatureParam), statusesConfig]),
      ([signatures, config]) => {
        if (signatures.length > MAX_STATUSES) {
          throw invalidParams(`Too many inputs provided; max ${MAX_STATUSES}`);
        }
        const slot = chain.slot("processed");
        const statuses = signatures.map((signature) => {
          const transaction = chain.landed(signature);
          if (!transaction) return null;
          if (!config?.searchTransactionHistory && slot - transaction.slot > STATUS_CACHE_SLOTS)
            return null;
          const confirmationStatus = commitmentReached(transaction);
          return {
            slot: transaction.slot,
            confirmations: confirmationStatus === "finalized" ? null : slot - transaction.slot,
            err: transaction.err,
            status: toStatusJson(transaction),
            confirmationStatus,
          };
        });
        return withContext(slot, statuses);
      },
    ),

    getTransaction: method(z.tuple([signatureParam, transactionConfig]), ([signature, config]) => {
      const latestSlot = historySlot(config);
      const transaction = chain.landed(signature);
      if (!transaction || transaction.slot > latestSlot) return null;
      const { version } = transaction.message;
      const maxVersion = config?.maxSupportedTransactionVersion ?? undefined;
      if (version !== "legacy" && version > (maxVersion ?? -1))
        throw new JsonRpcError(-32015, `Transaction version (${version}) is not supported`);
      return { ...toTransactionJson(transaction), ...(maxVersion !== undefined && { version }) };
    }),

    getSignaturesForAddress: method(
      z.tuple([addressParam, signaturesConfig]),
      ([address, config]) => {
        const latestSlot = historySlot(config);
        const newestFirst = chain
          .ledger()
          .filter(({ slot }) => slot <= latestSlot)
          .reverse();
        const indexOf = (cursor: string | null | undefined) =>
          newestFirst.findIndex(({ signature }) => signature === cursor);
        for (const cursor of [config?.before, config?.until]) {
          // Agave 4.0 and later do this; older nodes return an empty list.
          if (cursor && indexOf(cursor) === -1)
            throw new JsonRpcError(-32020, `Transaction ${cursor} not found`);
        }
        const end = indexOf(config?.until);
        return newestFirst
          .slice(indexOf(config?.before) + 1, end === -1 ? undefined : end)
          .filter(({ message }) => message.staticAccounts.some((account) => account === address))
          .slice(0, config?.limit ?? MAX_SIGNATURES_FOR_ADDRESS)
          .map((transaction) => {
            const { signature, slot, err, blockTime } = transaction;
            const confirmationStatus = commitmentReached(transaction);
            return { signature, slot, err, memo: null, blockTime, confirmationStatus };
          });
      },
    ),
  };
}

/** Throws -32602 if `base64` is not a transaction that the sandbox supports. */
function decodeParam(base64: string): WireTransaction {
  try {
    return decodeTransaction(Buffer.from(base64, "base64"));
  } catch (error) {
    throw invalidParams(`invalid transaction: ${toError(error).message}`);
  }
}
