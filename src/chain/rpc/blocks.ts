import { memoize } from "../../store/memoize.ts";
import { withDeadline } from "../../upstream/deadline.ts";
import { FINALIZED } from "./commitment.ts";
import type { Endpoints } from "./endpoints.ts";
import type { Failover } from "./failover.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { RpcError } from "./rpc-error.ts";
import type { RpcResult } from "./rpc-results.ts";

/**
 * A new blockhash is valid for 150 blocks. The other 150 allow for a load balancer whose nodes
 * differ in height.
 */
const MAX_VALID_BLOCKS = 300;
/** How long checks of outcomes share one read of an endpoint's newest finalized block. */
const FINALIZED_MAX_AGE_MS = 500;

type FinalizedBlock = RpcResult<"getEpochInfo">;

/** Reads slots, finalized blocks and blockhashes. Throws {@link RpcError}. */
export function createBlocks(needs: { endpoints: Endpoints; failover: Failover }) {
  const { endpoints, failover } = needs;
  const { callEndpoint } = endpoints;
  /** The last height of each endpoint that was read. */
  const heights = new Map<Endpoint, number>();

  const finalizedBlocks = new Map<Endpoint, () => Promise<FinalizedBlock>>();

  const readBlock: Attempt<FinalizedBlock> = async (endpoint, signal) => {
    const block = await callEndpoint(endpoint, "getEpochInfo", [FINALIZED], signal);
    heights.set(endpoint, block.blockHeight);
    return block;
  };
  const readSlot: Attempt<number> = (endpoint, signal) =>
    callEndpoint(endpoint, "getSlot", [FINALIZED], signal);
  const readBlockhash = async (endpoint: Endpoint, signal: AbortSignal) => {
    const method = "getLatestBlockhash";
    const { context, value } = await callEndpoint(endpoint, method, [FINALIZED], signal);
    // A height that was read earlier is at most too low.
    const isTooHigh = () =>
      value.lastValidBlockHeight > (heights.get(endpoint) ?? 0) + MAX_VALID_BLOCKS;
    if (isTooHigh()) await readBlock(endpoint, signal);
    if (isTooHigh()) throw new RpcError("unreadable", method, endpoint.host);
    return { value, slot: context.slot, endpoint };
  };

  return {
    /**
     * An endpoint's newest finalized block. All callers share one read for half a second. It is no
     * sign that the endpoint knows outcomes.
     */
    getFinalizedBlock(endpoint: Endpoint): Promise<FinalizedBlock> {
      const read = () =>
        withDeadline(endpoints.slowMs, (deadline) => readBlock(endpoint, deadline));
      const block = finalizedBlocks.get(endpoint) ?? memoize(read, FINALIZED_MAX_AGE_MS);
      finalizedBlocks.set(endpoint, block);
      return block();
    },

    /**
     * The newest blockhash, and the last block height at which it is valid. A proxy may repeat an
     * old one: if another endpoint that works does not know it, in a slot at or after its own, this
     * is the other endpoint's. Waits for no turn, because several collects share a read: each would
     * wait for the turn of the one that began it.
     */
    async getLatestBlockhash(): Promise<RpcResult<"getLatestBlockhash">["value"]> {
      const latest = await failover.call("reads", readBlockhash, { isAtOnce: true });
      const { value, slot } = latest;
      const other = endpoints.inOrder("reads", slot).find((each) => each !== latest.endpoint);
      if (!other || endpoints.fails(other, "reads")) return value;
      const params = [value.blockhash, { commitment: "processed" }];
      const validity = await failover
        .callOne(other, "reads", (endpoint, signal) =>
          callEndpoint(endpoint, "isBlockhashValid", params, signal),
        )
        .catch(() => undefined);
      if (!validity || validity.value || validity.context.slot < slot) return value;
      const another = await failover.callOne(other, "reads", readBlockhash).catch(() => undefined);
      return another?.value ?? value;
    },

    /** The newest finalized slot of one endpoint. */
    getSlot: () => failover.call("reads", readSlot),

    /**
     * The newest finalized slot of all endpoints; Infinity if one does not tell its own in time: of
     * those that do, all may be behind.
     */
    async readNewestSlot(): Promise<number> {
      const slots = endpoints.all.map((endpoint) =>
        failover.callOne(endpoint, "reads", readSlot, 2 * endpoints.slowMs).catch(() => Infinity),
      );
      return Math.max(...(await Promise.all(slots)));
    },
  };
}
