import type { Logger } from "../../observability/log.ts";
import type { CallUpstream } from "../../upstream/http.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import { FINALIZED } from "./commitment.ts";
import { createEndpointJudge } from "./endpoint-judge.ts";
import { createFailover } from "./failover.ts";
import { createReadAccounts, toMinContextSlot, type Accounts } from "./read-accounts.ts";
import { createCallEndpoint, toEndpoints, type Attempt, type Endpoint } from "./rpc-endpoint.ts";
import { isRefusal, RpcError, toRpcError } from "./rpc-error.ts";
import type { Account, RpcResult } from "./rpc-results.ts";
import { memoizeByEndpoint, withDeadline } from "./deadline.ts";
import {
  createSignatureStatuses,
  type FinalizedBlock,
  type ReportWaits,
} from "./signature-status.ts";
import type { TransactionError } from "./transaction-error.ts";
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

/** An account that does not exist. */
const EMPTY = { lamports: toLamports(0), data: Buffer.alloc(0) };

interface SimulationWanted {
  /** The accounts to return. */
  readonly addresses: readonly string[];
  /** One of `addresses`. */
  readonly feePayer: string;
  /** With fewer lamports after the transaction, the fee payer counts as short. */
  readonly leastLeft: bigint;
  /** Whether the next endpoint must confirm this error of a simulation. */
  readonly confirmsError: (err: TransactionError) => boolean;
  /** The simulated state is at least as new. */
  readonly minSlot: number;
}

type SimulatedAccount = Pick<Account, "lamports" | "data">;

/** What the simulation of a transaction shows. */
export type Simulation =
  | { readonly err: TransactionError; readonly logs: readonly string[] }
  | {
      readonly err: null;
      /** The endpoint that simulated the transaction. */
      readonly endpoint: Endpoint;
      readonly unitsConsumed: number;
      /** By address, after the transaction. */
      readonly accounts: ReadonlyMap<string, SimulatedAccount>;
      /** The fee payer's lamports before the transaction; undefined if the node omits them. */
      readonly payerBefore: Lamports | undefined;
      /** The fee payer's lamports after the transaction. */
      readonly left: Lamports;
    };

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
  const { callEndpoint, newestSlot, takeSlot, isReached, readClusters, genesisHash, problems } =
    judge;
  const failover = createFailover({ endpoints, judge, rpcTimeoutMs });
  const readSlot: Attempt<number> = (endpoint, signal) =>
    callEndpoint(endpoint, "getSlot", [FINALIZED], signal);
  /** Reads the newest finalized slot. Like other reads, fails if no endpoint has a current slot. */
  const getSlot = () => failover.call(readSlot);

  /** Throws {@link RpcError} `refused` if the node refuses the transaction. */
  const simulateAt =
    (
      transaction: string,
      options: object,
      call = callEndpoint,
    ): Attempt<RpcResult<"simulateTransaction">> =>
    async (endpoint, signal) => {
      const method = "simulateTransaction";
      const result = await call(endpoint, method, [transaction, options], signal);
      // Some nodes decode a transaction of a version that is not active, and fail its simulation.
      if (result.value.err !== "UnsupportedVersion") return result;
      throw new RpcError("refused", method, endpoint.host);
    };

  /** Throws {@link RpcError} `unreadable` for an impossible height. */
  const readFinalizedBlock: Attempt<FinalizedBlock> = async (endpoint, signal) => {
    const method = "getEpochInfo";
    const block = await callEndpoint(endpoint, method, [FINALIZED], signal);
    if (judge.takeHeight(endpoint, block.blockHeight)) return block;
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
    judgeReads(readers, failures) {
      for (const [endpoint, error] of failures) judge.failed(endpoint, error);
      const refusing = [...failures].filter(([, error]) => isRefusal(error));
      judge.tookTransaction(
        readers,
        refusing.map(([endpoint]) => endpoint),
      );
    },
  });

  return {
    ...createTransactions(reads),

    newestSlot,
    takeSlot,
    readClusters,
    genesisHash,
    problems,
    readAccounts,
    /** The number of configured endpoints; equal URLs count once. */
    endpointCount: endpoints.length,

    /**
     * The accounts of each group of addresses, in order, without their data. `avoided` is asked
     * only if no other endpoint works.
     */
    async getAccounts(
      groups: readonly (readonly string[])[],
      avoided?: Endpoint,
    ): Promise<Accounts[]> {
      const read: Accounts[] = [];
      await readAccounts({
        groups,
        bytes: 0,
        avoided,
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
     * Simulates a transaction (base64, signed or not) with a fresh blockhash. The next endpoint is
     * asked too if one says that the fee payer is short, returns an error to confirm, or omits
     * members of a successful simulation. Throws {@link RpcError} `refused` if every endpoint
     * refuses the transaction.
     */
    simulateTransaction(transaction: string, wanted: SimulationWanted): Promise<Simulation> {
      const { addresses, feePayer, leastLeft, confirmsError, minSlot } = wanted;
      const options = {
        ...SIMULATION,
        ...toMinContextSlot(minSlot),
        accounts: { encoding: "base64", addresses },
      };
      const simulate = simulateAt(transaction, options);
      return failover.callWithTransaction(
        async (endpoint, signal): Promise<Simulation> => {
          const { value } = await simulate(endpoint, signal);
          const { err, unitsConsumed, accounts, preBalances, logs } = value;
          if (err !== null) return { err, logs: logs ?? [] };
          const left = accounts?.[addresses.indexOf(feePayer)]?.lamports;
          if (
            left === undefined ||
            accounts?.length !== addresses.length ||
            !unitsConsumed ||
            unitsConsumed < 0
          )
            throw new RpcError("unreadable", "simulateTransaction", endpoint.host);
          return {
            ...{ err, endpoint, unitsConsumed, left },
            accounts: new Map(accounts.map((account, i) => [addresses[i]!, account ?? EMPTY])),
            payerBefore: preBalances?.[0],
          };
        },
        (result) => (result.err === null ? result.left >= leastLeft : !confirmsError(result.err)),
      );
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
      const results = await failover.callEachWithTransaction((endpoint, signal) =>
        callEndpoint(endpoint, "sendTransaction", [transaction, options], signal),
      );
      if (results.every(({ status }) => status === "rejected"))
        throw (results[0] as PromiseRejectedResult).reason;
    },

    ...statuses,

    getSlot,

    /**
     * The newest finalized slot that two endpoints have reached, or that one reports and the chain
     * can have reached: the preferred endpoint may be behind. Like other reads, fails if no endpoint
     * has a current slot.
     */
    async getNewestSlot(): Promise<number> {
      const results = await failover.callEach(readSlot);
      const reported = results.flatMap((result) =>
        result.status === "fulfilled" ? result.value : ((result.reason as RpcError).slot ?? []),
      );
      // Another endpoint has reached all slots but the first.
      const slots = reported.sort((a, b) => b - a).filter((slot, i) => i > 0 || isReached(slot));
      return slots.length > 0 ? Math.max(newestSlot(), ...slots) : getSlot();
    },
  };
}
