import type { Rpc } from "../chain/rpc/rpc-client.ts";
import { respondJson } from "../rest/respond.ts";
import { memoize } from "../upstream/memoize.ts";

/** Probes within this time share one check of the chain, so frequent probes cost nothing. */
const CHAIN_CHECK_MAX_AGE_MS = 1_000;

/**
 * `/livez`: always 200. `/readyz`: 200 if the process should receive requests, that is if it is neither starting
 * nor shutting down and the chain answers; otherwise 503 with the reasons.
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

    /** `/readyz` returns 503 until `start` resolves. */
    async waitForStart(start: Promise<unknown>): Promise<void> {
      isStarting = true;
      await start;
      isStarting = false;
    },
    /** `/readyz` returns 503 from now on. */
    drain(): void {
      isDraining = true;
    },
  };
}
