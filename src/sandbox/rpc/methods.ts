import { isAddress, isSignature } from "@solana/kit";
import { z } from "zod";
import { toError } from "../../observability/thrown.ts";
import type { Chain, ChainAccount, SandboxTransaction } from "../chain/chain.ts";
import { decodeTransaction } from "../chain/wire-transaction.ts";
import type { WireTransaction } from "../chain/wire-transaction.ts";
import { invalidParams, JsonRpcError, method } from "./json-rpc.ts";
import type { Methods } from "./json-rpc.ts";
import { toTransactionJson } from "./transaction-json.ts";

/** The validator version whose response shapes the sandbox copies. */
const API_VERSION = "4.2.2";

/** How many slots `getRecentPrioritizationFees` covers. */
const PRIORITY_FEE_SLOTS = 150;
/**
 * The length of a node's status cache; only `searchTransactionHistory` finds older transactions.
 */
const STATUS_CACHE_SLOTS = 300;
const MAX_SIGNATURES_FOR_ADDRESS = 1000;

// The service sends only the values given as literals; any other value fails with -32602.
const addressParam = z.string().refine(isAddress);
const signatureParam = z.string().refine(isSignature);
const base64 = z.literal("base64");

/** The last parameter of nearly every method. */
const Config = z.object({
  commitment: z.enum(["processed", "confirmed", "finalized"]).default("finalized"),
  minContextSlot: z.int().nonnegative().default(0),
});
type Config = z.output<typeof Config>;

const AccountConfig = Config.extend({
  encoding: base64,
  dataSlice: z.object({ offset: z.int().nonnegative(), length: z.int().nonnegative() }).optional(),
});
const SimulateConfig = Config.extend({
  encoding: base64,
  sigVerify: z.literal(false),
  replaceRecentBlockhash: z.literal(true),
  accounts: z.object({ encoding: base64, addresses: z.array(addressParam) }),
});
const SendConfig = z.object({ encoding: base64, skipPreflight: z.literal(true) });
const StatusesConfig = z.object({ searchTransactionHistory: z.boolean() });
const TransactionConfig = Config.extend({
  encoding: z.literal("json").default("json"),
  maxSupportedTransactionVersion: z.int().nonnegative().default(0),
});
const SignaturesConfig = Config.extend({
  limit: z.int().min(1).max(MAX_SIGNATURES_FOR_ADDRESS),
  before: signatureParam.optional(),
});

/**
 * The JSON-RPC methods of a real node that the gateway and its tests use:
 * https://solana.com/docs/rpc/http.
 */
export function createMethods(chain: Chain): Methods {
  /**
   * The slot to report as a response's context. Throws -32016 if the slot is below the requested
   * `minContextSlot`.
   */
  function slotFor({ commitment, minContextSlot }: Config): number {
    const contextSlot = chain.slot(commitment);
    if (contextSlot < minContextSlot)
      throw new JsonRpcError(-32016, "Minimum context slot has not been reached", { contextSlot });
    return contextSlot;
  }

  const inContext = (config: Config, value: unknown) => ({
    context: { slot: slotFor(config), apiVersion: API_VERSION },
    value,
  });

  const confirmationStatusOf = ({ slot }: SandboxTransaction) =>
    (["finalized", "confirmed"] as const).find((each) => slot <= chain.slot(each)) ?? "processed";

  return {
    getSlot: method([Config], slotFor),

    getLatestBlockhash: method([Config], (config) =>
      inContext(config, chain.latestBlockhash(config.commitment)),
    ),

    isBlockhashValid: method([addressParam, Config], (blockhash, config) =>
      inContext(config, chain.isBlockhashValid(blockhash)),
    ),

    getRecentPrioritizationFees: method([z.array(addressParam).max(128).nullish()], () => {
      const latestSlot = chain.slot("processed");
      return Array.from({ length: PRIORITY_FEE_SLOTS }, (_, i) => ({
        slot: latestSlot - PRIORITY_FEE_SLOTS + 1 + i,
        prioritizationFee: 0,
      }));
    }),

    getEpochInfo: method([Config], (config) => ({
      absoluteSlot: slotFor(config),
      blockHeight: chain.blockHeight(config.commitment),
    })),

    getVersion: method([], () => ({ "solana-core": API_VERSION })),

    getGenesisHash: method([], () => chain.genesis.hash),

    getAgGenesisCert: method([], () => ({ block: { slot: chain.genesis.slot } })),

    getMultipleAccounts: method(
      [z.array(addressParam).max(100), AccountConfig],
      (addresses, config) =>
        inContext(
          config,
          addresses.map((each) => toAccountJson(chain.account(each), config.dataSlice)),
        ),
    ),

    simulateTransaction: method([z.string(), SimulateConfig], (text, config) => {
      const transaction = decodeParam(text);
      const { staticAccounts } = transaction.message;
      const { addresses } = config.accounts;
      if (addresses.length > staticAccounts.length)
        throw invalidParams(`Too many accounts provided; max ${staticAccounts.length}`);
      const { accounts, ...execution } = chain.simulate(transaction);
      return inContext(config, {
        ...execution,
        accounts: addresses.map((each) =>
          execution.err === null ? toAccountJson(accounts.get(each) ?? chain.account(each)) : null,
        ),
        preBalances: staticAccounts.map((key) => chain.balance(key)),
        innerInstructions: null,
        // Only reported: the simulation accepts any blockhash, so the transaction's is not
        // replaced.
        replacementBlockhash: chain.latestBlockhash(config.commitment),
      });
    }),

    sendTransaction: method([z.string(), SendConfig], (text) => {
      const transaction = decodeParam(text);
      // Without preflight a real node checks nothing, not even signatures: callers poll
      // `getSignatureStatuses`.
      chain.send(transaction);
      return transaction.signature;
    }),

    getSignatureStatuses: method(
      [z.array(signatureParam).max(256), StatusesConfig],
      (signatures, config) => {
        const latestSlot = chain.slot("processed");
        const firstSlot = config.searchTransactionHistory ? 0 : latestSlot - STATUS_CACHE_SLOTS;
        const statuses = signatures.map((each) => {
          const transaction = chain.landed(each);
          if (!transaction || transaction.slot < firstSlot) return null;
          const { slot, err } = transaction;
          const confirmationStatus = confirmationStatusOf(transaction);
          const confirmations = confirmationStatus === "finalized" ? null : latestSlot - slot;
          return { slot, confirmations, err, confirmationStatus };
        });
        return inContext(Config.parse({ commitment: "processed" }), statuses);
      },
    ),

    getTransaction: method([signatureParam, TransactionConfig], (of, config) => {
      const latestSlot = slotFor(config);
      const transaction = chain.landed(of);
      if (!transaction || transaction.slot > latestSlot) return null;
      const { version } = transaction.message;
      if (version === 1 && config.maxSupportedTransactionVersion < 1)
        throw new JsonRpcError(-32015, `Transaction version (${version}) is not supported`);
      return toTransactionJson(transaction);
    }),

    getSignaturesForAddress: method([addressParam, SignaturesConfig], (of, config) => {
      const latestSlot = slotFor(config);
      const newestFirst = chain
        .ledger()
        .filter(({ slot }) => slot <= latestSlot)
        .reverse();
      const { before, limit } = config;
      const index = newestFirst.findIndex((each) => each.signature === before);
      // Agave 4.0 and later do this; older nodes return an empty list.
      if (before && index === -1) throw new JsonRpcError(-32020, `Transaction ${before} not found`);
      return newestFirst
        .slice(index + 1)
        .filter(({ message }) => message.staticAccounts.includes(of))
        .slice(0, limit)
        .map((transaction) => {
          const { signature, slot, err, blockTime } = transaction;
          const confirmationStatus = confirmationStatusOf(transaction);
          return { signature, slot, err, memo: null, blockTime, confirmationStatus };
        });
    }),
  };
}

/** An account in the shape of a real node's response, with a slice of its data, or with all of it. */
function toAccountJson(
  account: ChainAccount | null,
  { offset, length } = { offset: 0, length: Infinity },
): object | null {
  if (!account) return null;
  const { data, ...others } = account;
  const slice = Buffer.from(data.subarray(offset, offset + length));
  return {
    ...others,
    data: [slice.toString("base64"), "base64"],
    // Of a rent-exempt account, as JSON rounds it.
    rentEpoch: 2 ** 64,
    space: data.length,
  };
}

/** Throws -32602 if `text`, in base64, is not a transaction that the sandbox supports. */
function decodeParam(text: string): WireTransaction {
  try {
    return decodeTransaction(Buffer.from(text, "base64"));
  } catch (error) {
    throw invalidParams(`invalid transaction: ${toError(error).message}`);
  }
}
