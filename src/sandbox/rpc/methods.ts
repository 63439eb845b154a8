import type { Chain, ChainAccount, SandboxTransaction } from "../chain/chain.ts";
import type { Commitment } from "../chain/slots.ts";
import { decodeTransaction } from "../chain/wire-transaction.ts";
import { JsonRpcError, type Methods } from "./json-rpc.ts";

/** The last parameter of nearly every method. */
interface Config {
  readonly commitment?: Commitment;
  readonly minContextSlot?: number;
}
interface Slice {
  readonly offset: number;
  readonly length: number;
}
type AccountsParams = [addresses: string[], (Config & { readonly dataSlice?: Slice })?];
type SimulateParams = [
  text: string,
  Config & { readonly accounts: { readonly addresses: string[] } },
];
type SignaturesParams = [of: string, Config & { readonly limit: number; readonly before?: string }];

/**
 * The JSON-RPC methods of a real node that the gateway uses, with only the parameters that it
 * sends, and answers that @solana/web3.js can read: https://solana.com/docs/rpc/http.
 */
export function createMethods(chain: Chain): Methods {
  /**
   * The slot to report as a response's context. Throws -32016 if the slot is below the requested
   * `minContextSlot`.
   */
  function slotFor({ commitment = "finalized", minContextSlot = 0 }: Config = {}): number {
    const contextSlot = chain.slot(commitment);
    if (contextSlot < minContextSlot)
      throw new JsonRpcError(-32016, "Minimum context slot has not been reached", { contextSlot });
    return contextSlot;
  }

  const inContext = (config: Config | undefined, value: unknown) => ({
    context: { slot: slotFor(config) },
    value,
  });

  const confirmationStatusOf = ({ slot }: SandboxTransaction): Commitment =>
    slot <= chain.slot("finalized") ? "finalized" : "processed";

  return {
    getSlot: ([config]: [Config?]) => slotFor(config),

    getLatestBlockhash: ([config]: [Config?]) =>
      inContext(config, chain.latestBlockhash("finalized")),

    isBlockhashValid: ([blockhash, config]: [string, Config?]) =>
      inContext(config, chain.isBlockhashValid(blockhash)),

    getRecentPrioritizationFees: () => [{ slot: chain.slot("processed"), prioritizationFee: 0 }],

    getEpochInfo: ([config]: [Config?]) => ({
      absoluteSlot: slotFor(config),
      blockHeight: chain.blockHeight("finalized"),
    }),

    getGenesisHash: () => chain.genesisHash,

    getMultipleAccounts([addresses, config]: AccountsParams) {
      refuseMore(addresses, 100);
      return inContext(
        config,
        addresses.map((each) => toAccountJson(chain.account(each), config?.dataSlice)),
      );
    },

    simulateTransaction([text, config]: SimulateParams) {
      const transaction = decode(text);
      const { accountKeys } = transaction.message;
      const { addresses } = config.accounts;
      refuseMore(addresses, accountKeys.length);
      const { accounts, ...execution } = chain.simulate(transaction);
      return inContext(config, {
        ...execution,
        accounts: addresses.map((each) =>
          execution.err === null ? toAccountJson(accounts.get(each) ?? chain.account(each)) : null,
        ),
        preBalances: accountKeys.map((key) => chain.balance(key)),
      });
    },

    sendTransaction([text]: [string]) {
      const transaction = decode(text);
      // Without preflight a real node checks nothing, not even signatures: callers poll
      // `getSignatureStatuses`.
      chain.send(transaction);
      return transaction.signature;
    },

    getSignatureStatuses([signatures]: [string[]]) {
      refuseMore(signatures, 256);
      const statuses = signatures.map((each) => {
        const transaction = chain.landed(each);
        if (!transaction) return null;
        const { slot, err } = transaction;
        const confirmationStatus = confirmationStatusOf(transaction);
        const confirmations = confirmationStatus === "finalized" ? null : 0;
        return { slot, err, confirmations, confirmationStatus };
      });
      return inContext({ commitment: "processed" }, statuses);
    },

    getTransaction([signature, config]: [string, Config?]) {
      const latestSlot = slotFor(config);
      const transaction = chain.landed(signature);
      return transaction && transaction.slot <= latestSlot ? toTransactionJson(transaction) : null;
    },

    getSignaturesForAddress([of, config]: SignaturesParams) {
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
        .filter(({ message }) => message.accountKeys.includes(of))
        .slice(0, limit)
        .map((transaction) => {
          const { signature, slot, err, blockTime } = transaction;
          const confirmationStatus = confirmationStatusOf(transaction);
          return { signature, slot, err, memo: null, blockTime, confirmationStatus };
        });
    },
  } as Methods;
}

/** Throws -32602 for more parameters than a node accepts. */
function refuseMore(list: readonly unknown[], most: number): void {
  if (list.length > most) throw new JsonRpcError(-32602, `Too many inputs provided; max ${most}`);
}

const decode = (text: string) => decodeTransaction(Buffer.from(text, "base64"));

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

/**
 * The result of `getTransaction` with encoding `json`, in the shape of a real node's response,
 * without what neither this service nor web3.js needs.
 */
function toTransactionJson(transaction: SandboxTransaction): object {
  const { slot, blockTime, version, signatures, message } = transaction;
  const { err, preBalances, postBalances, innerInstructions } = transaction;
  return {
    slot,
    blockTime,
    version,
    transaction: { signatures, message },
    meta: {
      err,
      preBalances,
      postBalances,
      innerInstructions,
      fee: transaction.feeLamports,
      logMessages: transaction.logs,
      computeUnitsConsumed: transaction.unitsConsumed,
    },
  };
}
