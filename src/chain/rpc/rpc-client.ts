import { setTimeout as sleep } from "node:timers/promises";
import type { ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import type { Logger } from "../../observability/log.ts";
import { addMs, monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";
import type { CallUpstream } from "../../upstream/http.ts";
import { createBlocks } from "./blocks.ts";
import { withDeadline } from "../../upstream/deadline.ts";
import { createEndpoints } from "./endpoints.ts";
import { createFailover, type FailoverWaits } from "./failover.ts";
import { createOutcomes, type OutcomeWaits } from "./outcome.ts";
import { createReadAccounts, type Accounts } from "./read-accounts.ts";
import { readTransactionWith, type LandedTransaction } from "./read-transaction.ts";
import { createCallEndpoint, toEndpoints } from "./rpc-endpoint.ts";
import { isRefusal, RpcError } from "./rpc-error.ts";
import { createSimulateTransaction } from "./simulate-transaction.ts";

const REREAD_MS = 400;

export type Rpc = ReturnType<typeof createRpc>;

/**
 * JSON-RPC methods with failover, each within `rpcTimeoutMs`. All throw an `RpcError`.
 */
export function createRpc(
  needs: OutcomeWaits &
    FailoverWaits & {
      urls: readonly URL[];
      rpcTimeoutMs: number;
      callUpstream: CallUpstream;
      /** Absent: calls do not wait, and are not counted. */
      chainCallPlan?: Pick<ChainCallPlan, "turn" | "count"> | undefined;
      log: Logger;
    },
) {
  const { callUpstream, chainCallPlan, rpcTimeoutMs, rereadMs = REREAD_MS, log } = needs;
  const endpoints = createEndpoints({
    endpoints: toEndpoints(needs.urls),
    callEndpoint: createCallEndpoint({ callUpstream, onCall: chainCallPlan?.count }),
    rpcTimeoutMs,
    log,
  });
  const { callEndpoint, readClusters, genesisHash, newestSlot } = endpoints;
  const failover = createFailover({ ...needs, endpoints, takeTurn: chainCallPlan?.turn });
  const readAccounts = createReadAccounts({ failover, callEndpoint });
  const { getFinalizedBlock, ...blocks } = createBlocks({ endpoints, failover });

  /** The transaction as the first endpoint returns it that has it; undefined if none has. */
  const readTransaction = (signature: string, accountKeys: readonly string[] = []) =>
    failover.call("histories", readTransactionWith(callEndpoint, signature, accountKeys), {
      isEnough: (transaction) => transaction !== undefined,
    });

  return {
    ...createOutcomes({ ...needs, endpoints, failover, getFinalizedBlock }),
    ...blocks,
    ...createSimulateTransaction({ failover, callEndpoint }),

    /** See {@link createFailover} and {@link createEndpoints}. */
    call: failover.call,
    callEndpoint,
    readClusters,
    genesisHash,
    newestSlot,
    problems: endpoints.problems,
    describe: endpoints.describe,
    readAccounts,

    readTransaction,

    /**
     * Reads a landed transaction. Retries for `timeoutMs` after the first read, because a node may
     * return a transaction only some time after it is final. With a caller's `signal`, an error
     * ends it.
     */
    async readLanded(
      signature: string,
      accountKeys: readonly string[],
      timeoutMs: number,
      signal?: AbortSignal,
    ): Promise<LandedTransaction> {
      let giveUpAt: MonotonicTime | undefined;
      for (;;) {
        const landed = await readTransaction(signature, accountKeys).catch((error: unknown) => {
          if (signal) throw error;
        });
        if (landed) return landed;
        giveUpAt ??= addMs(monotonicNow(), timeoutMs);
        if (monotonicNow() > giveUpAt)
          throw new RpcError("unreadable", "getTransaction", "every endpoint");
        await sleep(rereadMs, undefined, { signal });
      }
    },

    /** The accounts at these addresses, in order, without their data. */
    async getAccounts(addresses: readonly string[]): Promise<Accounts> {
      let read: Accounts = [];
      await readAccounts({
        groups: [addresses],
        bytes: 0,
        take(_i, { accounts }) {
          read = accounts;
          return true;
        },
      });
      return read;
    },

    /**
     * Sends a signed transaction (base64) to every endpoint, because a node may accept and then
     * drop it. Skips preflight; the nodes do not resend. Fails if all endpoints fail.
     */
    async sendTransaction(transaction: string): Promise<void> {
      const params = [transaction, { encoding: "base64", skipPreflight: true, maxRetries: 0 }];
      const sends = endpoints.inOrder("sends").map((endpoint) =>
        withDeadline(rpcTimeoutMs, (deadline) =>
          callEndpoint(endpoint, "sendTransaction", params, deadline),
        ).catch((error: unknown) => {
          // Whether it works is seen when it is asked for the outcome.
          if (isRefusal(error)) endpoints.failed(endpoint, "sends", error);
          throw error;
        }),
      );
      await Promise.any(sends);
    },
  };
}
