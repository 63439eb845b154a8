import { z } from "zod";
import { parseJson } from "../../upstream/parse-json.ts";
import type { Logger } from "../../observability/log.ts";
import { isOk, isTimeout, type CallUpstream, type UpstreamAnswer } from "../../upstream/http.ts";
import { createFailover, type Endpoint } from "./failover.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import { RpcError } from "./rpc-error.ts";
import { RPC_RESULTS, type RpcMethod, type RpcResult } from "./rpc-results.ts";
import type { TransactionError } from "./transaction-error.ts";

/** The status of a transaction that a node has executed. */
export interface SignatureStatus {
  readonly err: TransactionError | null;
  /** Two thirds of the stake have voted for its block, or it is finalized: final enough to report amounts. */
  readonly confirmed: boolean;
  /** The slot in which it was executed. */
  readonly slot: number;
}

/** An account's lamports and the requested slice of its data. */
export interface Account {
  readonly lamports: Lamports;
  readonly data: Buffer;
  /** The program that owns it, in base58; undefined when the node omits it. */
  readonly owner?: string | undefined;
  /** The bytes of all its data; undefined when the node omits it. */
  readonly space?: number | undefined;
  /** Whether it is a program; undefined when the node omits it. */
  readonly executable?: boolean | undefined;
}

/** A part of an account's data: `length` bytes from `offset`, or fewer if the data ends before. */
export interface DataSlice {
  readonly offset: number;
  readonly length: number;
}

/** The limit of `getMultipleAccounts`. */
export const MAX_ACCOUNTS_PER_CALL = 100;
/** The limit of `getSignatureStatuses`. */
export const MAX_SIGNATURES_PER_CALL = 256;

const NO_DATA: DataSlice = { offset: 0, length: 0 };
const CONFIRMED = { commitment: "confirmed" };
const FINALIZED = { commitment: "finalized" };

const ENVELOPE = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.int() }).nullish(),
});

export type Rpc = ReturnType<typeof createRpc>;

/**
 * The JSON-RPC methods this service uses, typed, with failover between endpoints, each call within
 * `timeoutMs`. Reads use commitment `confirmed`, and never return a state older than the newest of this
 * service's transactions that is known to have landed. Every method throws {@link RpcError}.
 */
export function createRpc(needs: {
  urls: readonly URL[];
  timeoutMs: number;
  callUpstream: CallUpstream;
  log: Logger;
}) {
  const { callUpstream } = needs;
  const failover = createFailover(needs);
  let lastId = 0;
  let newestLandedSlot = 0;

  function requireSlot(slot: number): void {
    newestLandedSlot = Math.max(newestLandedSlot, slot);
  }

  const readOptions = () =>
    newestLandedSlot > 0 ? { ...CONFIRMED, minContextSlot: newestLandedSlot } : CONFIRMED;

  function call<M extends RpcMethod>(method: M, params: unknown[]): Promise<RpcResult<M>> {
    return failover.call((endpoint, signal) => callAt(endpoint, method, params, signal));
  }

  async function callAt<M extends RpcMethod>(
    endpoint: Endpoint,
    method: M,
    params: unknown[],
    signal: AbortSignal,
  ): Promise<RpcResult<M>> {
    const { url, host, headers } = endpoint;
    const read = ({ status, text }: UpstreamAnswer): RpcResult<M> => {
      // A status other than 2xx comes from a proxy, not from the node.
      if (!isOk(status)) throw new RpcError("status", method, host, { code: status });
      const envelope = ENVELOPE.safeParse(parseJson(text));
      if (!envelope.success) throw new RpcError("unreadable", method, host);
      const { error } = envelope.data;
      // Keep only the code: a node's message may contain anything.
      if (error) throw new RpcError("error", method, host, { code: error.code });
      const result = RPC_RESULTS[method].safeParse(envelope.data.result);
      if (!result.success) throw new RpcError("unreadable", method, host, { cause: result.error });
      return result.data as RpcResult<M>;
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params });
    try {
      return await callUpstream({ upstream: "chain", method, url, headers, body, signal }, read);
    } catch (cause) {
      if (cause instanceof RpcError) throw cause;
      throw new RpcError(isTimeout(cause) ? "timeout" : "unreachable", method, host, { cause });
    }
  }

  return {
    /** Makes every later read return a state at least as new as `slot`. */
    requireSlot,

    /** Up to 100 accounts, in the order of `addresses`; undefined for a missing account. */
    async getAccounts(
      addresses: readonly string[],
      dataSlice: DataSlice = NO_DATA,
    ): Promise<(Account | undefined)[]> {
      const options = { ...readOptions(), encoding: "base64", dataSlice };
      const { value } = await call("getMultipleAccounts", [addresses, options]);
      if (value.length !== addresses.length) throw new RpcError("unreadable", "getMultipleAccounts", "");
      return value.map((found) => (found ? { ...found, data: sliceData(found.data, dataSlice) } : undefined));
    },

    /** The rent-exempt minimum of an account with `space` bytes of data. */
    getMinimumBalanceForRentExemption: (space: number) =>
      call("getMinimumBalanceForRentExemption", [space, CONFIRMED]),

    async getLatestBlockhash() {
      return (await call("getLatestBlockhash", [readOptions()])).value;
    },

    /**
     * For each recent slot, the lowest price in micro-lamports per compute unit at which a transaction that
     * writes to all `addresses` landed.
     */
    async getRecentPrices(addresses: readonly string[]): Promise<number[]> {
      const fees = await call("getRecentPrioritizationFees", [addresses]);
      return fees.map(({ prioritizationFee }) => prioritizationFee);
    },

    /**
     * Simulates a transaction (base64, signed or not) on the current state, with its blockhash replaced by a
     * fresh one. `balances` are those of `addresses` afterwards; undefined when the node omits them.
     */
    async simulateTransaction(transaction: string, addresses: readonly string[]) {
      const { value } = await call("simulateTransaction", [
        transaction,
        {
          ...readOptions(),
          encoding: "base64",
          sigVerify: false,
          replaceRecentBlockhash: true,
          accounts: { encoding: "base64", addresses },
        },
      ]);
      return {
        err: value.err,
        unitsConsumed: value.unitsConsumed ?? undefined,
        balances: value.accounts?.map((found) => found?.lamports ?? toLamports(0)),
        logs: value.logs ?? [],
      };
    },

    /** Sends a signed transaction (base64) without preflight; the node does not resend it. */
    sendTransaction: (transaction: string) =>
      failover.callEverywhere((endpoint, signal) =>
        callAt(
          endpoint,
          "sendTransaction",
          [transaction, { encoding: "base64", skipPreflight: true, maxRetries: 0 }],
          signal,
        ),
      ),

    /** The statuses of up to 256 signatures, in order, and the slot of the response. */
    async getSignatureStatuses(
      signatures: readonly string[],
      { searchTransactionHistory }: { searchTransactionHistory: boolean },
    ) {
      const options = { searchTransactionHistory };
      const { context, value } = await call("getSignatureStatuses", [signatures, options]);
      if (value.length !== signatures.length) throw new RpcError("unreadable", "getSignatureStatuses", "");
      const statuses = value.map((found): SignatureStatus | undefined => {
        if (!found) return undefined;
        const { err, confirmations, confirmationStatus } = found;
        // Ignore slots ahead of the node: as minContextSlot they would block reads.
        const slot = found.slot <= context.slot ? found.slot : 0;
        const confirmed =
          confirmationStatus === "confirmed" || confirmationStatus === "finalized" || confirmations === null;
        if (confirmed) requireSlot(slot);
        return { err, confirmed, slot };
      });
      return { statuses, slot: context.slot };
    },

    /** The height and slot of the newest finalized block, both from one node. */
    getFinalizedBlock: () => call("getEpochInfo", [FINALIZED]),

    /** Identifies the cluster. */
    getGenesisHash: () => call("getGenesisHash", []),

    /** The newest confirmed slot. */
    getSlot: () => call("getSlot", [CONFIRMED]),

    /**
     * A landed transaction's error, its fee, and the balances of each of its accounts before and after;
     * undefined while the node does not know it.
     */
    async getTransaction(signature: string) {
      const options = { ...CONFIRMED, encoding: "json", maxSupportedTransactionVersion: 1 };
      const found = await call("getTransaction", [signature, options]);
      if (!found) return undefined;
      const { err, fee, preBalances, postBalances, loadedAddresses } = found.meta;
      const keys = [
        ...found.transaction.message.accountKeys,
        ...(loadedAddresses?.writable ?? []),
        ...(loadedAddresses?.readonly ?? []),
      ];
      const balances = new Map(
        keys.map((key, i) => [key, { before: preBalances[i], after: postBalances[i] }] as const),
      );
      return { err, fee, balances, blockTime: found.blockTime ?? undefined };
    },
  };
}

/** Slices the data of an account, because some nodes ignore the requested slice. */
function sliceData(data: Buffer, { offset, length }: DataSlice): Buffer {
  return data.length > length ? data.subarray(offset, offset + length) : data;
}
