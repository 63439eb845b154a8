import type { ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import type { Logger } from "../../observability/log.ts";
import type { CallUpstream } from "../../upstream/http.ts";
import { createBlocks } from "./blocks.ts";
import { createEndpointDoubt } from "./endpoint-doubt.ts";
import { createEndpointRanking } from "./endpoint-ranking.ts";
import { createFailover } from "./failover.ts";
import { createReadAccounts, type Accounts } from "./read-accounts.ts";
import { createCallEndpoint, toEndpoints, type Endpoint } from "./rpc-endpoint.ts";
import { isRefusal } from "./rpc-error.ts";
import { createSignatureStatuses, type ReportWaits } from "./signature-status.ts";
import { createSimulations } from "./simulate-transaction.ts";
import { createReadTransaction, createTransactionReader } from "./read-transactions.ts";

/** How many endpoints are asked for prices. */
const MAX_PRICE_ANSWERS = 2;

export type Rpc = ReturnType<typeof createRpc>;

/**
 * JSON-RPC methods with failover, each within `rpcTimeoutMs`. All throw an `RpcError`.
 */
export function createRpc(
  needs: ReportWaits & {
    urls: readonly URL[];
    rpcTimeoutMs: number;
    callUpstream: CallUpstream;
    /** Absent: calls do not wait, and are not counted. */
    chainCallPlan?: Pick<ChainCallPlan, "turn" | "count"> | undefined;
    log: Logger;
  },
) {
  const { callUpstream, chainCallPlan, rpcTimeoutMs, log } = needs;
  const endpoints = toEndpoints(needs.urls);
  const callUnchecked = createCallEndpoint({ callUpstream, onCall: chainCallPlan?.count });
  const ranking = createEndpointRanking({
    endpoints,
    callEndpoint: callUnchecked,
    rpcTimeoutMs,
    log,
  });
  const { callEndpoint, newestSlot, takeSlot, isReachedAt, readClusters, genesisHash, problems } =
    ranking;
  const failover = createFailover({
    endpoints,
    ranking,
    takeTurn: chainCallPlan?.turn,
    rpcTimeoutMs,
  });
  const { isDown } = ranking;
  const reads = { failover, callEndpoint, isReachedAt, isDown };
  const readAccounts = createReadAccounts(reads);
  const doubt = createEndpointDoubt();
  const { getFinalizedBlock, ...blocks } = createBlocks({
    ...{ ...needs, endpoints, failover, ranking, doubt },
  });
  const statuses = createSignatureStatuses({
    ...needs,
    ...reads,
    getFinalizedBlock,
    readTransactionAt: createReadTransaction(reads),
    isOverruled: ranking.isOverruled,
    recordReads(readers, failures) {
      for (const [endpoint, error] of failures) ranking.failed(endpoint, error);
      const refusals = [...failures].filter(([, error]) => isRefusal(error));
      const refusing = refusals.map(([endpoint]) => endpoint);
      // To return a transaction does not show that an endpoint takes one.
      if (refusing.length > 0) ranking.tookTransaction(readers, refusing);
    },
  });
  const simulations = createSimulations({
    endpoints,
    failover,
    doubt,
    callEndpoint,
    callUnchecked,
    rpcTimeoutMs,
  });

  return {
    ...createTransactionReader(reads),
    ...statuses,
    ...blocks,
    ...simulations,

    newestSlot,
    takeSlot,
    readClusters,
    genesisHash,
    problems,
    readAccounts,
    /** The number of configured endpoints; equal URLs count once. */
    endpointCount: endpoints.length,

    /**
     * The accounts of each group of addresses, in order, without their data. `avoidedEndpoint` is
     * asked only if no other endpoint works.
     */
    async getAccounts(
      groups: readonly (readonly string[])[],
      avoidedEndpoint?: Endpoint,
    ): Promise<Accounts[]> {
      const read: Accounts[] = [];
      await readAccounts({
        groups,
        bytes: 0,
        avoided: avoidedEndpoint,
        take(i, { accounts }) {
          if (accounts.some((account) => account?.isRounded)) return "unusable";
          read[i] = accounts;
          return "taken";
        },
      });
      return read;
    },

    /**
     * For each recent slot, the lowest price for a write to all `addresses`, in micro-lamports per
     * compute unit. If that makes more than `usualPrice` by `priceOf`, another endpoint is asked
     * too, and the cheaper answer counts: one endpoint alone must not spend the fee budget.
     */
    async getRecentPrices(
      addresses: readonly string[],
      priceOf: (prices: readonly number[]) => bigint = () => 0n,
      usualPrice = 0n,
    ): Promise<number[]> {
      const answers: number[][] = [];
      await failover.call(
        async (endpoint, signal) => {
          const method = "getRecentPrioritizationFees";
          const fees = await callEndpoint(endpoint, method, [addresses], signal);
          return fees.map(({ prioritizationFee }) => prioritizationFee);
        },
        (prices) => {
          answers.push(prices);
          return priceOf(prices) <= usualPrice || answers.length >= MAX_PRICE_ANSWERS;
        },
      );
      return answers.reduce((a, b) => (priceOf(b) < priceOf(a) ? b : a));
    },

    /**
     * Sends a signed transaction (base64) to every endpoint, because a node may accept and then
     * drop it. Skips preflight; the nodes do not resend. Fails if all endpoints fail.
     */
    async sendTransaction(transaction: string): Promise<void> {
      const options = { encoding: "base64", skipPreflight: true, maxRetries: 0 };
      const results = await failover.callEachWithTransaction((endpoint, signal) =>
        callEndpoint(endpoint, "sendTransaction", [transaction, options], signal),
      );
      if (results.every((result) => result.status === "rejected")) throw results[0]?.reason;
    },
  };
}
