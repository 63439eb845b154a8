import type { Lamports } from "../lamports.ts";
import type { CallEndpoint } from "./rpc-endpoint.ts";
import type { Failover } from "./failover.ts";
import { RpcError } from "./rpc-error.ts";
import type { RpcResult } from "./rpc-results.ts";

/** A transaction in the history of an address. */
export interface ListedTransaction {
  readonly signature: string;
  readonly hasFailed: boolean;
  /** Whether it can never change or disappear. */
  readonly isFinalized: boolean;
}

/** What a transaction did to its accounts. Addresses are in base58. */
export interface AddressTransaction {
  readonly hasFailed: boolean;
  /** In seconds since 1970; undefined when the node does not know. */
  readonly blockTime: number | undefined;
  /** Those below 2^53 lamports. */
  readonly balances: ReadonlyMap<string, { readonly before: Lamports; readonly after: Lamports }>;
  /** The instructions that ran, also those that programs called. */
  readonly instructions: readonly { readonly program: string; readonly accounts: readonly string[] }[];
}

/**
 * The node knows no transaction `before`. Nodes older than Agave 4.0 return an empty list instead. Source: the changelog
 * of Agave, 4.0.0.
 */
const UNKNOWN_CURSOR = -32020;

/** Reads the transactions of any address. Throws {@link RpcError}. */
export function createAddressHistory(needs: {
  failover: Failover;
  callEndpoint: CallEndpoint;
  isPossibleSlot: (slot: number) => boolean;
  readOptions: () => object;
}) {
  const { failover, callEndpoint, isPossibleSlot, readOptions } = needs;

  return {
    /**
     * The newest transactions that name an address, newest first: those before the transaction `before`, at
     * most `limit`; none if no endpoint knows that one. An empty list is checked at the other endpoints, because some
     * keep only the last days.
     */
    listTransactions: (
      address: string,
      { before, limit }: { before: string | undefined; limit: number },
    ): Promise<ListedTransaction[]> =>
      failover.call(
        async (endpoint, signal) => {
          const method = "getSignaturesForAddress";
          const params = [address, { ...readOptions(), limit, ...(before === undefined ? {} : { before }) }];
          const found = await callEndpoint(endpoint, method, params, signal).catch((error: unknown) => {
            // Not a failure: any caller can make up a cursor, and the endpoint must not back off for that.
            if (error instanceof RpcError && error.code === UNKNOWN_CURSOR) return [];
            throw error;
          });
          const signatures = new Set(found.map(({ signature }) => signature));
          const isNewestFirst = found.every(({ slot }, i) => i === 0 || slot <= found[i - 1]!.slot);
          const isPossible = found.every(({ slot }) => isPossibleSlot(slot));
          const repeats = signatures.size < found.length || (before !== undefined && signatures.has(before));
          if (found.length > limit || repeats || !isNewestFirst || !isPossible)
            throw new RpcError("unreadable", method, endpoint.host);
          return found.map(({ signature, err, confirmationStatus }) => ({
            signature,
            hasFailed: err !== null,
            isFinalized: confirmationStatus === "finalized",
          }));
        },
        (found) => found.length > 0,
      ),

    /** A transaction that names `address`; undefined while no endpoint returns it. */
    readTransaction: (signature: string, address: string): Promise<AddressTransaction | undefined> =>
      failover.call(
        async (endpoint, signal) => {
          const method = "getTransaction";
          const options = { commitment: "confirmed", encoding: "json", maxSupportedTransactionVersion: 1 };
          const found = await callEndpoint(endpoint, method, [signature, options], signal);
          const transaction = found ? toTransaction(found) : undefined;
          const isRight =
            found?.transaction.signatures[0] === signature && transaction?.balances.has(address);
          if (found && !isRight) throw new RpcError("unreadable", method, endpoint.host);
          return transaction;
        },
        (found) => found !== undefined,
      ),
  };
}

/** The balances of `keys` that are known. */
export function toBalances(
  keys: readonly string[],
  preBalances: readonly (Lamports | undefined)[],
  postBalances: readonly (Lamports | undefined)[],
): AddressTransaction["balances"] {
  return new Map(
    keys.flatMap((key, i) => {
      const [before, after] = [preBalances[i], postBalances[i]];
      return before === undefined || after === undefined ? [] : [[key, { before, after }]];
    }),
  );
}

/** Undefined if the balances do not fit the accounts. */
function toTransaction({
  transaction: { message },
  meta,
  blockTime,
}: NonNullable<RpcResult<"getTransaction">>): AddressTransaction | undefined {
  const { writable, readonly } = meta.loadedAddresses ?? { writable: [], readonly: [] };
  // The order of balances and indexes. Source: Solana's JSON-RPC documentation, "Transaction Status Metadata".
  const keys = [...message.accountKeys, ...writable, ...readonly];
  const { preBalances, postBalances } = meta;
  if (preBalances.length !== keys.length || postBalances.length !== keys.length) return undefined;
  const inner = meta.innerInstructions?.flatMap(({ instructions }) => instructions) ?? [];
  const instructions = [...(message.instructions ?? []), ...inner].map(({ programIdIndex, accounts }) => ({
    program: keys[programIdIndex] ?? "",
    accounts: accounts.map((index) => keys[index] ?? ""),
  }));
  return {
    hasFailed: meta.err !== null,
    blockTime: blockTime ?? undefined,
    balances: toBalances(keys, preBalances, postBalances),
    instructions,
  };
}
