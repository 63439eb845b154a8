import type { Logger } from "../../observability/log.ts";
import type { CallUpstream } from "../../upstream/http.ts";
import { toLamports } from "../lamports.ts";
import { createEndpointJudge } from "./endpoint-judge.ts";
import { createFailover } from "./failover.ts";
import { createHeightCheck } from "../slots/height-check.ts";
import { createReadAccounts, toMinContextSlot, type Accounts } from "./read-accounts.ts";
import { createCallEndpoint, toEndpoints, type Attempt, type Endpoint } from "./rpc-endpoint.ts";
import { isOfVersion, refusesVersion, RpcError } from "./rpc-error.ts";
import type { RpcResult } from "./rpc-results.ts";
import { memoizeByEndpoint } from "./deadline.ts";
import { createSignatureStatuses, type ReportWaits } from "./signature-status.ts";
import { createTransactions } from "./transactions.ts";

/** The first byte of a transaction of version 1. Source: SIMD-0385. */
const VERSION_1 = 0x81;
const CONFIRMED = { commitment: "confirmed" };
const FINALIZED = { commitment: "finalized" };

/** How long collects share one read of an endpoint's block height. */
const HEIGHT_MAX_AGE_MS = 1_000;
/**
 * A new blockhash is valid for 150 blocks. The other 150 allow for a load balancer whose nodes
 * differ in height.
 */
const MAX_VALID_BLOCKS = 300;

export type Rpc = ReturnType<typeof createRpc>;

/**
 * JSON-RPC methods with failover, each within `rpcTimeoutMs`. Most reads are `confirmed`. All throw
 * {@link RpcError}.
 */
export function createRpc(
  needs: ReportWaits & {
    urls: readonly URL[];
    rpcTimeoutMs: number;
    callUpstream: CallUpstream;
    log: Logger;
  },
) {
  const { callUpstream, rpcTimeoutMs, log } = needs;
  const endpoints = toEndpoints(needs.urls);
  const judge = createEndpointJudge({
    endpoints,
    callEndpoint: createCallEndpoint({ callUpstream }),
    rpcTimeoutMs,
    log,
  });
  const { callEndpoint, newestSlot, takeSlot, isReached, readClusters, genesisHash } = judge;
  const failover = createFailover({ endpoints, judge, rpcTimeoutMs });
  /**
   * `getLatestBlockhash` checks heights before it reports them: a wrong low one makes true ones
   * look impossible.
   */
  const heights = createHeightCheck();

  const readSlot: Attempt<number> = (endpoint, signal) =>
    callEndpoint(endpoint, "getSlot", [CONFIRMED], signal);
  /** Reads the newest confirmed slot. Like other reads, fails if no endpoint has a current slot. */
  const getSlot = () => failover.call(readSlot);

  /**
   * Calls a method that takes a transaction. Throws {@link RpcError} `version` if the node refuses
   * version 1.
   */
  async function callWithTransaction<M extends "simulateTransaction" | "sendTransaction">(
    endpoint: Endpoint,
    method: M,
    params: [transaction: string, options: object],
    signal: AbortSignal,
  ): Promise<RpcResult<M>> {
    const isVersion1 = Buffer.from(params[0].slice(0, 4), "base64")[0] === VERSION_1;
    try {
      return await callEndpoint(endpoint, method, params, signal);
    } catch (cause) {
      if (!isVersion1 || !refusesVersion(cause)) throw cause;
      throw new RpcError("version", method, endpoint.host, { cause });
    }
  }

  /**
   * Reads a block height by `method`. Throws {@link RpcError} `unreadable` for an impossible
   * height.
   */
  async function readBlock<M extends "getBlockHeight" | "getEpochInfo">(
    method: M,
    commitment: object,
    endpoint: Endpoint,
    signal: AbortSignal,
  ): Promise<RpcResult<M>> {
    const block = await callEndpoint(endpoint, method, [commitment], signal);
    if (heights.isPossible(typeof block === "number" ? block : block.blockHeight)) return block;
    throw new RpcError("unreadable", method, endpoint.host);
  }
  const readHeight: Attempt<number> = (...at) => readBlock("getBlockHeight", CONFIRMED, ...at);
  const getHeight = memoizeByEndpoint(
    "getBlockHeight",
    readHeight,
    HEIGHT_MAX_AGE_MS,
    rpcTimeoutMs,
  );

  const reads = { failover, callEndpoint, isReached };
  const readAccounts = createReadAccounts(reads);
  const statuses = createSignatureStatuses({
    ...needs,
    failover,
    callEndpoint,
    readFinalizedBlock: (...at) => readBlock("getEpochInfo", FINALIZED, ...at),
    isReached,
  });

  return {
    ...createTransactions(reads),

    newestSlot,
    takeSlot,
    readClusters,
    genesisHash,
    readAccounts,
    /** The number of configured endpoints; equal URLs count once. */
    endpointCount: endpoints.length,

    /** The accounts of each group of addresses, in order, without their data. */
    async getAccounts(groups: readonly (readonly string[])[]): Promise<Accounts[]> {
      const read: Accounts[] = [];
      await readAccounts({
        groups,
        bytes: 0,
        take(i, { accounts }) {
          if (accounts.some((account) => account?.isRounded)) return "unusable";
          read[i] = accounts;
          return "taken";
        },
      });
      return read;
    },

    /**
     * The newest blockhash, and the last block height at which it is valid: at most 300 above the
     * node's height.
     */
    getLatestBlockhash: () =>
      failover.call(async (endpoint, signal) => {
        const [height, { value }] = await Promise.all([
          getHeight(endpoint, signal),
          callEndpoint(endpoint, "getLatestBlockhash", [CONFIRMED], signal),
        ]);
        const isTooHigh = (height: number) =>
          value.lastValidBlockHeight > height + MAX_VALID_BLOCKS;
        if (isTooHigh(height) && isTooHigh(await readHeight(endpoint, signal)))
          throw new RpcError("unreadable", "getLatestBlockhash", endpoint.host);
        heights.report(height);
        return value;
      }),

    /**
     * For each recent slot, the lowest price for a write to all `addresses`, in micro-lamports per
     * compute unit.
     */
    async getRecentPrices(addresses: readonly string[]): Promise<number[]> {
      const fees = await failover.call((endpoint, signal) =>
        callEndpoint(endpoint, "getRecentPrioritizationFees", [addresses], signal),
      );
      return fees.map(({ prioritizationFee }) => prioritizationFee);
    },

    /**
     * Simulates a transaction (base64, signed or not) with a fresh blockhash, on a state at least
     * as new as `minSlot`. `accounts`: the accounts of `addresses` after the transaction.
     * `payerBefore`: the fee payer's lamports before it, in the same slot. Both are undefined when
     * the node omits them. Throws {@link RpcError} `version` if no endpoint simulates the
     * transaction and one refuses its version.
     */
    async simulateTransaction(transaction: string, addresses: readonly string[], minSlot: number) {
      const options = {
        ...CONFIRMED,
        ...toMinContextSlot(minSlot),
        encoding: "base64",
        sigVerify: false,
        replaceRecentBlockhash: true,
        accounts: { encoding: "base64", addresses },
      };
      let refusal: unknown;
      const simulate: Attempt<RpcResult<"simulateTransaction">> = async (endpoint, signal) => {
        try {
          const method = "simulateTransaction";
          const result = await callWithTransaction(
            endpoint,
            method,
            [transaction, options],
            signal,
          );
          if (result.value.err !== "UnsupportedVersion") return result;
          throw new RpcError("version", method, endpoint.host);
        } catch (error) {
          if (isOfVersion(error)) refusal = error;
          throw error;
        }
      };
      const { value } = await failover.call(simulate).catch((error: unknown) => {
        throw refusal ?? error;
      });
      return {
        err: value.err,
        unitsConsumed: value.unitsConsumed ?? undefined,
        accounts: value.accounts?.map(
          (found) => found ?? { lamports: toLamports(0), data: Buffer.alloc(0) },
        ),
        payerBefore: value.preBalances?.[0],
        logs: value.logs ?? [],
      };
    },

    /**
     * Sends a signed transaction (base64) to every endpoint, because a node may accept and then
     * drop it. Skips preflight; the nodes do not resend. Fails if all endpoints fail.
     */
    async sendTransaction(transaction: string): Promise<void> {
      const options = { encoding: "base64", skipPreflight: true, maxRetries: 0 };
      const results = await failover.callEach((endpoint, signal) =>
        callWithTransaction(endpoint, "sendTransaction", [transaction, options], signal),
      );
      if (results.every(({ status }) => status === "rejected"))
        throw (results[0] as PromiseRejectedResult).reason;
    },

    ...statuses,

    getSlot,

    /**
     * The newest confirmed slot of all endpoints, even if not credible. The preferred endpoint may
     * be behind.
     */
    async getNewestSlot(): Promise<number> {
      const results = await failover.callEach(readSlot);
      const slots = results.flatMap((result) =>
        result.status === "fulfilled" ? result.value : ((result.reason as RpcError).slot ?? []),
      );
      return slots.length > 0 ? Math.max(newestSlot(), ...slots) : getSlot();
    },
  };
}
