import type { Rpc } from "../chain/rpc/rpc-client.ts";
import { respondJson } from "../rest/respond.ts";
import { memoize } from "../upstream/memoize.ts";

/** One check of the chain answers all probes of this time, so that probes cost nothing. */
const CHAIN_CHECK_MAX_AGE_MS = 1_000;

/**
 * `/livez`: the process answers. `/readyz`: it should receive requests, which is so while it is neither
 * starting nor shutting down and the chain answers; else 503 with the reasons.
 */
export function createHealth({ rpc }: { rpc: Pick<Rpc, "getSlot"> }) {
  let isStarting = false;
  let isDraining = false;
  const checkChain = memoize(
    () =>
      rpc.getSlot().then(
        () => undefined,
        () => "no chain endpoint answers",
      ),
    CHAIN_CHECK_MAX_AGE_MS,
  );

  return {
    livez: (): Response => respondJson(200, { status: "ok" }),

    async readyz(): Promise<Response> {
      const reasons = [
        isStarting ? "starting" : undefined,
        isDraining ? "shutting down" : undefined,
        await checkChain(),
      ].filter((reason) => reason);
      return reasons.length === 0
        ? respondJson(200, { status: "ok" })
        : respondJson(503, { status: "unavailable", reasons });
    },

    /** The process is not ready until `start` resolves. */
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
