import type { Logger } from "../../observability/log.ts";
import type { CallUpstream } from "../../upstream/http.ts";
import { toLamports } from "../lamports.ts";
import { FINALIZED } from "./commitment.ts";
import { createEndpointJudge } from "./endpoint-judge.ts";
import { createFailover } from "./failover.ts";
import { createHeightCheck } from "../slots/height-check.ts";
import { createReadAccounts, toMinContextSlot, type Accounts } from "./read-accounts.ts";
import {
  createCallEndpoint,
  toEndpoints,
  type Attempt,
  type CallEndpoint,
  type Endpoint,
} from "./rpc-endpoint.ts";
import { mayRefuseTransaction, RpcError, toRpcError } from "./rpc-error.ts";
import type { RpcResult } from "./rpc-results.ts";
import { memoizeByEndpoint, withDeadline } from "./deadline.ts";
import {
  createSignatureStatuses,
  type FinalizedBlock,
  type ReportWaits,
} from "./signature-status.ts";
import { createReadTransaction, createTransactions } from "./transactions.ts";

const SIMULATION = {
  ...FINALIZED,
  encoding: "base64",
  sigVerify: false,
  replaceRecentBlockhash: true,
};

/** How long collects share one read of an endpoint's newest finalized block. */
const FINALIZED_MAX_AGE_MS = 1_000;
/**
 * A new blockhash is valid for 150 blocks. The other 150 allow for a load balancer whose nodes
 * differ in height.
 */
const MAX_VALID_BLOCKS = 300;

export type Rpc = ReturnType<typeof createRpc>;

/**
 * JSON-RPC methods with failover, each within `rpcTimeoutMs`. All throw {@link RpcError}.
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
  const { finalizedMaxAgeMs = FINALIZED_MAX_AGE_MS } = needs;
  const endpoints = toEndpoints(needs.urls);
  const callUnjudged = createCallEndpoint({ callUpstream });
  const judge = createEndpointJudge({
    endpoints,
    callEndpoint: callUnjudged,
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
    callEndpoint(endpoint, "getSlot", [FINALIZED], signal);
  /** Reads the newest finalized slot. Like other reads, fails if no endpoint has a current slot. */
  const getSlot = () => failover.call(readSlot);

  /**
   * Calls a method that takes a transaction. Throws {@link RpcError} `refused` if the node refuses
   * the transaction.
   */
  async function callWithTransaction<M extends "simulateTransaction" | "sendTransaction">(
    call: CallEndpoint,
    method: M,
    params: [transaction: string, options: object],
    endpoint: Endpoint,
    signal: AbortSignal,
  ): Promise<RpcResult<M>> {
    try {
      const result = await call(endpoint, method, params, signal);
      if (!isVersionUnsupported(result)) return result;
      throw new RpcError("refused", method, endpoint.host);
    } catch (cause) {
      if (!mayRefuseTransaction(cause)) throw cause;
      throw new RpcError("refused", method, endpoint.host, { cause });
    }
  }

  const simulateAt =
    (
      transaction: string,
      options: object,
      call = callEndpoint,
    ): Attempt<RpcResult<"simulateTransaction">> =>
    (...at) =>
      callWithTransaction(call, "simulateTransaction", [transaction, options], ...at);

  /** Throws {@link RpcError} `unreadable` for an impossible height. */
  const readFinalizedBlock: Attempt<FinalizedBlock> = async (endpoint, signal) => {
    const method = "getEpochInfo";
    const block = await callEndpoint(endpoint, method, [FINALIZED], signal);
    if (heights.isPossible(block.blockHeight)) return block;
    throw new RpcError("unreadable", method, endpoint.host);
  };
  const getFinalizedBlock = memoizeByEndpoint(
    "getEpochInfo",
    readFinalizedBlock,
    finalizedMaxAgeMs,
    rpcTimeoutMs,
  );

  const reads = { failover, callEndpoint, isReached };
  const readAccounts = createReadAccounts(reads);
  const statuses = createSignatureStatuses({
    ...needs,
    failover,
    callEndpoint,
    readTransactionAt: createReadTransaction(reads),
    getFinalizedBlock,
    isReached,
    hasFault: judge.hasFault,
    isDown: judge.isDown,
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
        const [{ blockHeight }, { value }] = await Promise.all([
          getFinalizedBlock(endpoint, signal),
          callEndpoint(endpoint, "getLatestBlockhash", [FINALIZED], signal),
        ]);
        const isTooHigh = (height: number) =>
          value.lastValidBlockHeight > height + MAX_VALID_BLOCKS;
        if (
          isTooHigh(blockHeight) &&
          isTooHigh((await readFinalizedBlock(endpoint, signal)).blockHeight)
        )
          throw new RpcError("unreadable", "getLatestBlockhash", endpoint.host);
        heights.report(blockHeight);
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
     * the node omits them. Throws {@link RpcError} `refused` if every endpoint refuses the
     * transaction.
     */
    async simulateTransaction(transaction: string, addresses: readonly string[], minSlot: number) {
      const options = {
        ...SIMULATION,
        ...toMinContextSlot(minSlot),
        accounts: { encoding: "base64", addresses },
      };
      const { value } = await failover.callWithTransaction(simulateAt(transaction, options));
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
     * Simulates a transaction (base64) at each endpoint, whatever its state and its slot. Returns
     * each endpoint's error, in order of preference; undefined if the endpoint simulates it.
     */
    simulateAtEach: (transaction: string): Promise<(RpcError | undefined)[]> =>
      Promise.all(
        endpoints.map((endpoint) =>
          withDeadline(rpcTimeoutMs, (deadline) =>
            simulateAt(transaction, SIMULATION, callUnjudged)(endpoint, deadline),
          ).then(
            () => undefined,
            (cause: unknown) => toRpcError(cause, "simulateTransaction", endpoint.host),
          ),
        ),
      ),

    /**
     * Sends a signed transaction (base64) to every endpoint, because a node may accept and then
     * drop it. Skips preflight; the nodes do not resend. Fails if all endpoints fail.
     */
    async sendTransaction(transaction: string): Promise<void> {
      const options = { encoding: "base64", skipPreflight: true, maxRetries: 0 };
      const results = await failover.callEachWithTransaction((...at) =>
        callWithTransaction(callEndpoint, "sendTransaction", [transaction, options], ...at),
      );
      if (results.every(({ status }) => status === "rejected"))
        throw (results[0] as PromiseRejectedResult).reason;
    },

    ...statuses,

    getSlot,

    /**
     * The newest finalized slot that two endpoints have reached, or that one reports and the chain
     * can have reached: the preferred endpoint may be behind. Fails if only one endpoint answers
     * while another is not down, or, like other reads, if no endpoint has a current slot.
     */
    async getNewestSlot(): Promise<number> {
      const results = await failover.callEach(readSlot);
      const reported = results.flatMap((result) =>
        result.status === "fulfilled" ? result.value : ((result.reason as RpcError).slot ?? []),
      );
      const up = endpoints.filter((endpoint) => !judge.isDown(endpoint));
      if (reported.length < 2 && up.length > 1) throw new RpcError("slot", "getSlot", up[0]!.host);
      // Another endpoint has reached all slots but the first.
      const slots = reported.sort((a, b) => b - a).filter((slot, i) => i > 0 || isReached(slot));
      return slots.length > 0 ? Math.max(newestSlot(), ...slots) : getSlot();
    },
  };
}

/** Some nodes decode a transaction of a version that is not active, and fail its simulation. */
const isVersionUnsupported = (
  result: RpcResult<"simulateTransaction" | "sendTransaction">,
): boolean => typeof result === "object" && result.value.err === "UnsupportedVersion";
