import type { Rpc } from "../chain/rpc/rpc-client.ts";
import { createRecent } from "../upstream/memoize.ts";
import { respondJson } from "../rest/respond.ts";
import type { Handler } from "./router.ts";

/** One look at the chain answers everyone who asks within this time, so that asking costs nothing. */
const CHAIN_CHECK_MAX_AGE_MS = 1_000;

/**
 * `/livez`: the process answers. `/readyz`: it should be sent requests, which is so while it is neither
 * starting nor shutting down and the chain answers; else 503 with the reasons.
 */
export function createHealth({ rpc }: { rpc: Rpc }) {
  let isStarting = false;
  let isDraining = false;
  const checkChain = createRecent(
    () =>
      rpc.getSlot().then(
        () => undefined,
        () => "no chain endpoint answers",
      ),
    CHAIN_CHECK_MAX_AGE_MS,
  );

  const livez: Handler = () => respondJson(200, { status: "ok" });
  const readyz: Handler = async () => {
    const reasons = [
      isStarting ? "starting" : undefined,
      isDraining ? "shutting down" : undefined,
      await checkChain(),
    ].filter((reason) => reason);
    return reasons.length === 0
      ? respondJson(200, { status: "ok" })
      : respondJson(503, { status: "unavailable", reasons });
  };

  return {
    livez,
    readyz,
    /** The process is not ready before `start` has ended well. */
    async starting(start: Promise<unknown>): Promise<void> {
      isStarting = true;
      await start;
      isStarting = false;
    },
    /** From now on the process is not ready. */
    drain(): void {
      isDraining = true;
    },
  };
}
