import { toError } from "../../observability/thrown.ts";
import type { Lamports } from "../primitives/lamports.ts";
import type { Attempt, CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import type { Failover } from "./failover.ts";
import { FINALIZED } from "./commitment.ts";
import { toMinContextSlot } from "./read-accounts.ts";
import { RpcError } from "./rpc-error.ts";
import type { RpcResult } from "./rpc-results.ts";
import type { TransactionError } from "./transaction-error.ts";

/** A transaction in the history of an address. */
export interface ListedTransaction {
  readonly signature: string;
  readonly slot: number;
  readonly hasFailed: boolean;
  /** Whether only one endpoint lists it, and another one does not. */
  readonly isDoubtful: boolean;
}

/** A listed transaction as read. */
export interface ReadTransaction {
  readonly transaction: LandedTransaction;
  /** False if only one of several endpoints returns it. */
  readonly isCertain: boolean;
  /** Whether another endpoint may soon answer: read again, because it may return another. */
  readonly isAlone: boolean;
}

/** What a transaction did to its accounts. Addresses are in base58. */
export interface LandedTransaction {
  readonly err: TransactionError | null;
  readonly fee: Lamports;
  /** The compute units that it used; 0 if the node omits them. */
  readonly unitsConsumed: number;
  /** The slot in which the transaction was executed; 0 if the reported slot is not credible. */
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

/** How many endpoints must return the same transaction, if that many are configured. */
const MIN_AGREEING = 2;

const READ_TRANSACTION = {
  ...FINALIZED,
  encoding: "json",
  maxSupportedTransactionVersion: 1,
};

/**
 * The error codes of a node that does not know the transaction `before`. Nodes older than Agave 4.0
 * return an empty list instead, or -32019 if they have long-term storage. Source: the changelog of
 * Agave, 4.0.0, and its `rpc.rs`.
 */
const UNKNOWN_CURSOR: readonly (number | undefined)[] = [-32020, -32019];

/** Reads a transaction from one endpoint; undefined if the endpoint does not have it. */
export type ReadTransactionAt = ReturnType<typeof createReadTransaction>;

/**
 * Returns a function that reads a transaction from one endpoint. `isRight` checks the transaction's
 * accounts, in order. A failed transaction may have no balances, if its fee payer could not pay
 * (SIMD-0290).
 */
export function createReadTransaction(needs: {
  callEndpoint: CallEndpoint;
  isReachedAt: (endpoint: Endpoint, slot: number) => boolean;
}) {
  const { callEndpoint, isReachedAt } = needs;
  return (
      signature: string,
      isRight: (keys: readonly string[]) => boolean,
    ): Attempt<LandedTransaction | undefined> =>
    async (endpoint, signal) => {
      const method = "getTransaction";
      const answer = await callEndpoint(endpoint, method, [signature, READ_TRANSACTION], signal);
      if (!answer) return undefined;
      const keys = keysOf(answer);
      const { err, preBalances, postBalances } = answer.meta;
      const isComplete = [preBalances, postBalances].every(({ length }) => length === keys.length);
      const isOther = answer.transaction.signatures[0] !== signature || !isRight(keys);
      if (isOther || (err === null && !isComplete))
        throw new RpcError("unreadable", method, endpoint.host);
      const slot = isReachedAt(endpoint, answer.slot) ? answer.slot : 0;
      return toLanded({ ...answer, slot }, keys);
    };
}

/** Reads landed transactions, and lists the transactions of an address. Throws {@link RpcError}. */
export function createTransactionReader(needs: {
  failover: Failover;
  callEndpoint: CallEndpoint;
  isReachedAt: (endpoint: Endpoint, slot: number) => boolean;
}) {
  const { failover, callEndpoint, isReachedAt } = needs;

  const readAt = createReadTransaction(needs);

  const isKnown = (signature: string): Promise<boolean> =>
    failover.call(
      async (endpoint, signal) =>
        (await callEndpoint(endpoint, "getTransaction", [signature, READ_TRANSACTION], signal)) !==
        null,
      (isFound) => isFound,
    );

  return {
    /**
     * Lists up to `limit` transactions that name an address, newest first, starting after the
     * transaction `before`. Returns undefined if no endpoint knows `before`. Skips endpoints
     * below `minSlot`. Merges the lists of two endpoints, because one could invent transactions,
     * and of all endpoints if a list is shorter than `limit`, because some nodes keep only the last
     * days; see {@link agree}.
     */
    async listTransactions(
      address: string,
      { before, limit, minSlot }: { before: string | undefined; limit: number; minSlot: number },
    ): Promise<readonly ListedTransaction[] | undefined> {
      const lists = new Map<Endpoint, readonly ListedTransaction[]>();
      const answeredEndpoints = new Set<Endpoint>();
      let list: readonly ListedTransaction[] = [];
      await failover.call(
        async (endpoint, signal) => {
          const method = "getSignaturesForAddress";
          const options = { ...FINALIZED, ...toMinContextSlot(minSlot), limit };
          const params = [address, before === undefined ? options : { ...options, before }];
          const entries = await callEndpoint(endpoint, method, params, signal).catch(
            (error: unknown) => {
              // Not a failure: any caller can make up a cursor, and the endpoint must not back off
              // for that.
              if (
                before !== undefined &&
                error instanceof RpcError &&
                UNKNOWN_CURSOR.includes(error.code)
              )
                return undefined;
              throw error;
            },
          );
          if (!entries) {
            answeredEndpoints.add(endpoint);
            return;
          }
          const signatures = new Set(entries.map(({ signature }) => signature));
          const isNewestFirst = entries.every(
            ({ slot }, i) => slot <= (entries[i - 1]?.slot ?? slot),
          );
          const isCredible = entries.every(({ slot }) => isReachedAt(endpoint, slot));
          const repeats =
            signatures.size < entries.length || (before !== undefined && signatures.has(before));
          if (entries.length > limit || repeats || !isNewestFirst || !isCredible)
            throw new RpcError("unreadable", method, endpoint.host);
          const endpointList = entries.map(({ signature, slot, err }) => ({
            signature,
            slot,
            hasFailed: err !== null,
            isDoubtful: false,
          }));
          answeredEndpoints.add(endpoint);
          lists.set(endpoint, endpointList);
          list = agree(lists, limit);
        },
        () => lists.size > 1 && list.filter(({ isDoubtful }) => !isDoubtful).length === limit,
        {
          others: {
            method: "getSignaturesForAddress",
            areNeeded: () => answeredEndpoints.size < MIN_AGREEING,
          },
        },
      );
      const isCursorUnknown = list.length === 0 && before !== undefined && !(await isKnown(before));
      return isCursorUnknown ? undefined : list;
    },

    /**
     * Reads a transaction, which names `address`, at two endpoints, and at the others if these do
     * not agree. Of those that agree about the balances, most also agree about the rest. Undefined
     * while no endpoint has it, or if only one of three has it.
     */
    async readTransaction(
      signature: string,
      address: string,
    ): Promise<ReadTransaction | undefined> {
      const readFrom = readAt(signature, (keys) => keys.includes(address));
      let isAlone = false;
      const method = "getTransaction";
      const answers = await failover.callTwo<LandedTransaction | Error | undefined>(
        readFrom,
        (endpoint, error) => {
          isAlone ||= failover.mayRecover(endpoint, method, error);
          return toError(error);
        },
        (some) => groupsOf(some, contentOf).some(({ length }) => length >= MIN_AGREEING),
        method,
      );
      const quorum = Math.min(MIN_AGREEING, answers.length);
      const groups = groupsOf(answers, movesOf);
      const agreeing = groups.find(({ length }) => length >= quorum) ?? [];
      const largestFirst = groupsOf(agreeing, contentOf).toSorted((a, b) => b.length - a.length);
      const [same = []] = largestFirst;
      const [agreedTransaction] = same;
      if (agreedTransaction)
        return {
          transaction: agreedTransaction,
          isCertain: same.length >= quorum,
          isAlone: false,
        };
      if (groups.length > 1) throw new RpcError("unreadable", method, "every endpoint");
      const absent = answers.filter((answer) => answer === undefined).length;
      const transaction = groups[0]?.[0];
      if (transaction && absent < MIN_AGREEING) return { transaction, isCertain: false, isAlone };
      if (transaction) return undefined;
      if (absent === 0) throw toError(answers[0]);
      return undefined;
    },
  };
}

/** What a transaction did to balances. */
const movesOf = ({ err, balances }: LandedTransaction): string =>
  JSON.stringify([
    err,
    ...[...balances].map(([address, { before, after }]) => `${address} ${before} ${after}`),
  ]);

/** All that a history shows of a transaction. */
const contentOf = (transaction: LandedTransaction): string =>
  JSON.stringify([movesOf(transaction), transaction.blockTime, transaction.instructions]);

/** Groups the transactions among endpoints' answers. */
function groupsOf(
  answers: readonly (LandedTransaction | Error | undefined)[],
  toText: (transaction: LandedTransaction) => string,
): readonly (readonly LandedTransaction[])[] {
  const transactions = answers.flatMap((each) => (each instanceof Error ? [] : (each ?? [])));
  return [...Map.groupBy(transactions, toText).values()];
}

/**
 * Merges the lists of several endpoints, each up to `limit` long and newest first, into one. One
 * endpoint of several could invent transactions. So a transaction that one endpoint lists and at
 * least two do not is left out. If only one does not, it is doubtful: either could be right. A
 * list of `limit` transactions says nothing about older ones; of those in its oldest slot it may
 * have left some out, so one there that only another lists is doubtful. A transaction has failed if
 * all lists say so.
 */
function agree(
  lists: ReadonlyMap<Endpoint, readonly ListedTransaction[]>,
  limit: number,
): readonly ListedTransaction[] {
  const votes = [...lists.values()].map((list) => ({
    signatures: new Map(list.map(({ signature, hasFailed }) => [signature, hasFailed])),
    oldestSlot: list[limit - 1]?.slot ?? -1,
  }));
  return [...lists.values()]
    .reduce(merge)
    .flatMap((each) => {
      const listing = votes.filter(({ signatures }) => signatures.has(each.signature));
      const others = votes.filter(({ signatures }) => !signatures.has(each.signature));
      const omitting = others.filter(({ oldestSlot }) => each.slot > oldestSlot);
      const hasFailed = listing.every(({ signatures }) => signatures.get(each.signature));
      if (listing.length === 1 && omitting.length > 1) return [];
      const isDoubtful =
        listing.length === 1 && others.some(({ oldestSlot }) => each.slot >= oldestSlot);
      return { ...each, hasFailed, isDoubtful };
    })
    .slice(0, limit);
}

/**
 * Merges two lists, newest first. Within a slot, the transactions of each list keep their order.
 */
function merge(
  list: readonly ListedTransaction[],
  other: readonly ListedTransaction[],
): readonly ListedTransaction[] {
  if (list.length === 0) return other;
  const mergedList = [...list];
  let end = 0;
  for (const each of other) {
    const knownIndex = mergedList.findIndex(({ signature }) => signature === each.signature);
    if (knownIndex >= 0) end = Math.max(end, knownIndex + 1);
    else {
      while (end < mergedList.length && mergedList[end]!.slot > each.slot) end++;
      mergedList.splice(end++, 0, each);
    }
  }
  return mergedList;
}

type RawTransaction = NonNullable<RpcResult<"getTransaction">>;

/**
 * All keys, in the order of their indexes. Source: Solana's JSON-RPC documentation, "Transaction
 * Status Metadata".
 */
function keysOf({ transaction, meta }: RawTransaction): readonly string[] {
  const { writable, readonly } = meta.loadedAddresses ?? { writable: [], readonly: [] };
  return [...transaction.message.accountKeys, ...writable, ...readonly];
}

function toLanded(
  { transaction: { message }, meta, slot, blockTime }: RawTransaction,
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
    unitsConsumed: meta.computeUnitsConsumed ?? 0,
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
