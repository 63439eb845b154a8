import { FINALIZED } from "../rpc/commitment.ts";
import { READ_CLOCK } from "../rpc/endpoints.ts";
import type { Endpoint } from "../rpc/rpc-endpoint.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import type { RpcResult } from "../rpc/rpc-results.ts";

/** A transaction in the history of an address. */
export type ListedTransaction = RpcResult<"getSignaturesForAddress">[number];

interface ListWanted {
  /** The list starts after this transaction. */
  readonly before?: string | undefined;
  readonly limit: number;
  readonly minSlot: number;
}

/**
 * The error codes of a node that does not know the transaction `before`. Nodes older than Agave 4.0
 * return an empty list instead, or -32019 if they have long-term storage. Source: the changelog of
 * Agave, 4.0.0, and its `rpc.rs`.
 */
const UNKNOWN_CURSOR: readonly (number | undefined)[] = [-32020, -32019];

/**
 * Lists up to `limit` transactions that name an address, newest first. Returns undefined if no
 * endpoint knows `before`. A short list may end early, because some nodes keep only the last days:
 * then the next endpoint's is merged in, if one answers. Throws {@link RpcError}.
 */
export async function listTransactions(
  rpc: Pick<Rpc, "call" | "callEndpoint" | "readTransaction">,
  address: string,
  { before, limit, minSlot }: ListWanted,
): Promise<readonly ListedTransaction[] | undefined> {
  const options = { ...FINALIZED, minContextSlot: minSlot, limit };
  const params = [address, before === undefined ? options : { ...options, before }];
  const bySignature = new Map<string, ListedTransaction>();
  const lists = new Set<Endpoint>();
  const listing = rpc.call(
    "histories",
    async (endpoint, signal) => {
      const list = await rpc
        .callEndpoint(endpoint, "getSignaturesForAddress", params, signal)
        .catch((error: unknown) => {
          // Any caller can make up a cursor.
          const isUnknown = error instanceof RpcError && UNKNOWN_CURSOR.includes(error.code);
          if (before !== undefined && isUnknown) return [];
          throw error;
        });
      // On another cluster all histories are empty. The clock shows whether it may be one.
      if (list.length === 0)
        await rpc.callEndpoint(endpoint, "getMultipleAccounts", READ_CLOCK, signal);
      lists.add(endpoint);
      for (const listed of list) bySignature.set(listed.signature, listed);
      return list;
    },
    { isEnough: (list) => list.length >= limit || lists.size > 1, needsAll: true },
  );
  await listing.catch((error: unknown) => {
    if (lists.size === 0) throw error;
  });
  if (bySignature.size === 0 && before !== undefined)
    return (await rpc.readTransaction(before)) && [];
  // Within a slot, transactions keep the order of the first list that has them.
  return [...bySignature.values()].sort((a, b) => b.slot - a.slot).slice(0, limit);
}
