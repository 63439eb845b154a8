import { createLruCache } from "../../store/lru-cache.ts";
import { FINALIZED } from "./commitment.ts";
import { memoizeByEndpoint } from "./deadline.ts";
import type { EndpointDoubt } from "./endpoint-doubt.ts";
import type { EndpointRanking } from "./endpoint-ranking.ts";
import type { Failover } from "./failover.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { RpcError } from "./rpc-error.ts";
import type { RpcResult } from "./rpc-results.ts";
import type { FinalizedBlock } from "./signature-status.ts";

/** How long collects share one read of an endpoint's newest finalized block. */
const FINALIZED_MAX_AGE_MS = 1_000;
/**
 * A new blockhash is valid for 150 blocks. The other 150 allow for a load balancer whose nodes
 * differ in height.
 */
const MAX_VALID_BLOCKS = 300;
/** More blockhashes than transactions in flight have. */
const MAX_GIVERS = 1_000;
/** How many endpoints must not accept a blockhash, until the one that returned it is doubted. */
const MIN_REFUSING = 2;
/** One of several endpoints does not say alone which slot is the newest. */
const MIN_REPORTED = 2;

/** Reads the newest slots, finalized blocks and blockhashes. Throws {@link RpcError}. */
export function createBlocks(needs: {
  endpoints: readonly Endpoint[];
  failover: Failover;
  ranking: Pick<EndpointRanking, "callEndpoint" | "takeHeight" | "newestSlot" | "isReached">;
  doubt: EndpointDoubt;
  rpcTimeoutMs: number;
  finalizedMaxAgeMs?: number | undefined;
}) {
  const {
    endpoints,
    failover,
    ranking,
    doubt,
    rpcTimeoutMs,
    finalizedMaxAgeMs = FINALIZED_MAX_AGE_MS,
  } = needs;
  const { callEndpoint, takeHeight, newestSlot, isReached } = ranking;

  /** By blockhash: the endpoint that returned it last. */
  const givers = createLruCache<string, Endpoint>(MAX_GIVERS);

  const readSlot: Attempt<number> = (endpoint, signal) =>
    callEndpoint(endpoint, "getSlot", [FINALIZED], signal);
  /** Reads the newest finalized slot. Like other reads, fails if no endpoint has a current slot. */
  const getSlot = () => failover.call(readSlot);

  /** Throws {@link RpcError} `unreadable` for an impossible height. */
  const readFinalizedBlock: Attempt<FinalizedBlock> = async (endpoint, signal) => {
    const method = "getEpochInfo";
    const block = await callEndpoint(endpoint, method, [FINALIZED], signal);
    if (takeHeight(endpoint, block.blockHeight)) return block;
    throw new RpcError("unreadable", method, endpoint.host);
  };
  const getFinalizedBlock = memoizeByEndpoint(
    "getEpochInfo",
    readFinalizedBlock,
    finalizedMaxAgeMs,
    rpcTimeoutMs,
  );

  /** Doubts the endpoint that returned a blockhash, because its transaction does not land. */
  function doubtBlockhash(blockhash: string): void {
    const giver = givers.get(blockhash);
    if (giver) doubt.cast(giver);
  }

  return {
    /** An endpoint's newest finalized block. All callers share one read for a second. */
    getFinalizedBlock,

    /**
     * The newest blockhash, and the last block height at which it is valid: at most 300 above the
     * node's height. Waits for no turn, because several collects share a read: each would wait for
     * the turn of the one that began it.
     */
    getLatestBlockhash: (): Promise<RpcResult<"getLatestBlockhash">["value"]> =>
      failover.callAtOnce(
        async (endpoint, signal) => {
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
          givers.set(value.blockhash, endpoint);
          return value;
        },
        undefined,
        { avoided: doubt.endpoint() },
      ),

    doubtBlockhash,

    /**
     * Doubts the endpoint that returned a blockhash if two do not accept it. Call when its
     * transaction has not landed soon. Asks that endpoint last. Throws {@link RpcError}.
     */
    async checkBlockhash(blockhash: string): Promise<void> {
      const giver = givers.get(blockhash);
      if (!giver || endpoints.length < MIN_REFUSING) return;
      let refusing = 0;
      await failover.call(
        (endpoint, signal) =>
          callEndpoint(
            endpoint,
            "isBlockhashValid",
            [blockhash, { commitment: "processed" }],
            signal,
          ),
        ({ value: isValid }) => isValid || ++refusing >= MIN_REFUSING,
        { avoided: giver },
      );
      if (refusing >= MIN_REFUSING) doubtBlockhash(blockhash);
    },

    getSlot,

    /**
     * The newest finalized slot that two endpoints have reached, or that one reports and the chain
     * can have reached: the preferred endpoint may be behind. Fails if only one of several
     * endpoints answers, or if one of two answers is too far ahead and a third is missing: either
     * may be right. Like other reads, also fails if no endpoint has a current slot.
     */
    async getNewestSlot(): Promise<number> {
      const results = await failover.callEach(readSlot);
      const reportedSlots = results.flatMap((result) => {
        if (result.status === "fulfilled") return result.value;
        return result.reason instanceof RpcError ? (result.reason.slot ?? []) : [];
      });
      const newestFirst = reportedSlots.sort((a, b) => b - a);
      // Another endpoint has reached all slots but the first.
      const slots = newestFirst.filter((slot, i) => i > 0 || isReached(slot));
      const isUnclear = slots.length < newestFirst.length && newestFirst.length < endpoints.length;
      if (isUnclear || newestFirst.length < Math.min(MIN_REPORTED, endpoints.length))
        throw new RpcError("slot", "getSlot", endpoints[0]!.host);
      return slots.length > 0 ? Math.max(newestSlot(), ...slots) : getSlot();
    },
  };
}
