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

/** The fields that nearly every method accepts in its last parameter. */
const configFields = {
  commitment: z.enum(["processed", "confirmed", "finalized"]).nullish(),
  minContextSlot: z.int().nonnegative().nullish(),
};
const configSchema = z.object(configFields).nullish();
type Config = z.output<typeof configSchema>;

const accountConfig = z.object({
  ...configFields,
  encoding: base64,
  dataSlice: z.object({ offset: z.int().nonnegative(), length: z.int().nonnegative() }).optional(),
});
const simulateConfig = z.object({
  ...configFields,
  encoding: base64,
  sigVerify: z.literal(false),
  replaceRecentBlockhash: z.literal(true),
  accounts: z.object({ encoding: base64, addresses: z.array(addressParam) }),
});
const sendConfig = z.object({ encoding: base64, skipPreflight: z.literal(true) });
const statusesConfig = z.object({ searchTransactionHistory: z.boolean().nullish() }).nullish();
/** Without `processed`, which a real node refuses here too. */
const historyConfig = { ...configFields, commitment: z.enum(["confirmed", "finalized"]).nullish() };
const transactionConfig = z
  .object({
    ...historyConfig,
    encoding: z.literal("json").nullish(),
    maxSupportedTransactionVersion: z.int().nonnegative().nullish(),
  })
  .nullish();
const signaturesConfig = z
  .object({
    ...historyConfig,
    limit: z.int().min(1).max(MAX_SIGNATURES_FOR_ADDRESS).nullish(),
    before: signatureParam.nullish(),
  })
  .nullish();

/**
 * The JSON-RPC methods of a real node that the gateway and its tests use:
 * https://solana.com/docs/rpc/http.
 */
export function createMethods(chain: Chain): Methods {
  /** The requested commitment; `finalized` by default, as on a real node. */
  const commitmentOf = (config: Config) => config?.commitment ?? "finalized";

  /**
   * The slot to report as a response's context. Throws -32016 if the slot is below the requested
   * `minContextSlot`.
   */
  function slotFor(config: Config): number {
    const contextSlot = chain.slot(commitmentOf(config));
    if (contextSlot < (config?.minContextSlot ?? 0))
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
    getSlot: method([configSchema], slotFor),

    getLatestBlockhash: method([configSchema], (config) =>
      inContext(config, chain.latestBlockhash(commitmentOf(config))),
    ),

    isBlockhashValid: method(
      [addressParam, z.object({ commitment: z.literal("processed") })],
      (blockhash, config) => inContext(config, chain.isBlockhashValid(blockhash)),
    ),

    getRecentPrioritizationFees: method([z.array(addressParam).max(128).nullish()], () => {
      const latestSlot = chain.slot("processed");
      return Array.from({ length: PRIORITY_FEE_SLOTS }, (_, i) => ({
        slot: latestSlot - PRIORITY_FEE_SLOTS + 1 + i,
        prioritizationFee: 0,
      }));
    }),

    getEpochInfo: method([configSchema], (config) => ({
      absoluteSlot: slotFor(config),
      blockHeight: chain.blockHeight(commitmentOf(config)),
    })),

    getVersion: method([], () => ({ "solana-core": API_VERSION })),

    getGenesisHash: method([], () => chain.genesis.hash),

    getAgGenesisCert: method([], () => ({ block: { slot: chain.genesis.slot } })),

    getMultipleAccounts: method(
      [z.array(addressParam).max(100), accountConfig],
      (addresses, config) =>
        inContext(
          config,
          addresses.map((each) => toAccountJson(chain.account(each), config.dataSlice)),
        ),
    ),

    simulateTransaction: method([z.string(), simulateConfig], (text, config) => {
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
        replacementBlockhash: chain.latestBlockhash(commitmentOf(config)),
      });
    }),

    sendTransaction: method([z.string(), sendConfig], (text) => {
      const transaction = decodeParam(text);
      // Without preflight a real node checks nothing, not even signatures: callers poll
      // `getSignatureStatuses`.
      chain.send(transaction);
      return transaction.signature;
    }),

    getSignatureStatuses: method(
      [z.array(signatureParam).max(256), statusesConfig],
      (signatures, config) => {
        const latestSlot = chain.slot("processed");
        const firstSlot = config?.searchTransactionHistory ? 0 : latestSlot - STATUS_CACHE_SLOTS;
        const statuses = signatures.map((each) => {
          const transaction = chain.landed(each);
          if (!transaction || transaction.slot < firstSlot) return null;
          const { slot, err } = transaction;
          const confirmationStatus = confirmationStatusOf(transaction);
          const confirmations = confirmationStatus === "finalized" ? null : latestSlot - slot;
          return { slot, confirmations, err, confirmationStatus };
        });
        return inContext({ commitment: "processed" }, statuses);
      },
    ),

    getTransaction: method([signatureParam, transactionConfig], (of, config) => {
      const latestSlot = slotFor(config);
      const transaction = chain.landed(of);
      if (!transaction || transaction.slot > latestSlot) return null;
      const { version } = transaction.message;
      if (version === 1 && !config?.maxSupportedTransactionVersion)
        throw new JsonRpcError(-32015, `Transaction version (${version}) is not supported`);
      return toTransactionJson(transaction);
    }),

    getSignaturesForAddress: method([addressParam, signaturesConfig], (of, config) => {
      const latestSlot = slotFor(config);
      const newestFirst = chain
        .ledger()
        .filter(({ slot }) => slot <= latestSlot)
        .reverse();
      const before = config?.before;
      const index = newestFirst.findIndex((each) => each.signature === before);
      // Agave 4.0 and later do this; older nodes return an empty list.
      if (before && index === -1) throw new JsonRpcError(-32020, `Transaction ${before} not found`);
      return newestFirst
        .slice(index + 1)
        .filter(({ message }) => message.staticAccounts.includes(of))
        .slice(0, config?.limit ?? MAX_SIGNATURES_FOR_ADDRESS)
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
