import type { Lamports } from "../primitives/lamports.ts";
import { FINALIZED } from "./commitment.ts";
import type { Attempt, CallEndpoint } from "./rpc-endpoint.ts";
import { RpcError } from "./rpc-error.ts";
import type { RpcResult, TransactionError } from "./rpc-results.ts";

/** What a transaction did to its accounts. Addresses are in base58. */
export interface LandedTransaction {
  readonly err: TransactionError | null;
  readonly fee: Lamports;
  /** The slot in which the transaction was executed. */
  readonly slot: number;
  /**
   * The time of its block, in seconds since 1970; undefined when the node does not know the time.
   */
  readonly blockTime: number | undefined;
  /**
   * By address. Balances of 2^53 lamports or more are left out, because JSON may have rounded them.
   */
  readonly balances: ReadonlyMap<string, { readonly before: Lamports; readonly after: Lamports }>;
  /** All instructions, including the inner ones that programs invoked. `data` is in base58. */
  readonly instructions: readonly { program: string; accounts: readonly string[]; data: string }[];
}

const READ_TRANSACTION = {
  ...FINALIZED,
  encoding: "json",
  maxSupportedTransactionVersion: 1,
};

/**
 * Returns an attempt that reads a transaction; undefined if the endpoint does not have it.
 * `accountKeys`: the transaction's first accounts, in order. A failed transaction may have no balances,
 * if its fee payer could not pay (SIMD-0290).
 */
export const readTransactionWith =
  (
    callEndpoint: CallEndpoint,
    signature: string,
    accountKeys: readonly string[],
  ): Attempt<LandedTransaction | undefined> =>
  async (endpoint, signal) => {
    const method = "getTransaction";
    const answer = await callEndpoint(endpoint, method, [signature, READ_TRANSACTION], signal);
    if (!answer) return undefined;
    const { err, preBalances, postBalances, loadedAddresses } = answer.meta;
    const { writable = [], readonly = [] } = loadedAddresses ?? {};
    // In the order of their indexes. Source: Solana's JSON-RPC documentation, "Transaction Status
    // Metadata".
    const keys = [...answer.transaction.message.accountKeys, ...writable, ...readonly];
    const isComplete = [preBalances, postBalances].every(({ length }) => length === keys.length);
    const isRight =
      answer.transaction.signatures[0] === signature &&
      accountKeys.every((key, i) => keys[i] === key);
    if (!isRight || (err === null && !isComplete))
      throw new RpcError("unreadable", method, endpoint.host);
    return toLanded(answer, keys);
  };

function toLanded(
  { transaction: { message }, meta, slot, blockTime }: NonNullable<RpcResult<"getTransaction">>,
  keys: readonly string[],
): LandedTransaction {
  const balances: [string, { before: Lamports; after: Lamports }][] = [];
  keys.forEach((key, i) => {
    const [before, after] = [meta.preBalances[i], meta.postBalances[i]];
    if (before !== undefined && after !== undefined) balances.push([key, { before, after }]);
  });
  const inner = meta.innerInstructions?.flatMap(({ instructions }) => instructions) ?? [];
  return {
    err: meta.err,
    fee: meta.fee,
    slot,
    blockTime: blockTime ?? undefined,
    balances: new Map(balances),
    instructions: [...(message.instructions ?? []), ...inner].map(
      ({ programIdIndex, accounts, data }) => ({
        program: keys[programIdIndex] ?? "",
        accounts: accounts.map((index) => keys[index] ?? ""),
        data,
      }),
    ),
  };
}
