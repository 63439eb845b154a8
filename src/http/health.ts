import type { Rpc } from "../chain/rpc/rpc-client.ts";
import type { Warnings } from "../observability/warnings.ts";
import { respondJson } from "../rest/respond.ts";
import { memoize } from "../upstream/memoize.ts";

/** Probes within this time share one check of the chain, so frequent probes cost nothing. */
const CHAIN_CHECK_MAX_AGE_MS = 1_000;

/**
 * `/livez`: always 200. `/readyz`: 200 if the process should receive requests, that is if it is neither starting
 * nor shutting down and the chain answers; otherwise 503 with the reasons. Its details also list the warnings,
 * which change no status; `refreshWarnings` is called while there are any.
 */
export function createHealth(needs: {
  rpc: Pick<Rpc, "getSlot">;
  warnings: Warnings;
  refreshWarnings: () => void;
}) {
  const { rpc, warnings } = needs;
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

    /** Without the details it shows only the status. */
    readyz: (options: { details: boolean }) => async (): Promise<Response> => {
      const reasons = [
        isStarting ? "starting" : undefined,
        isDraining ? "shutting down" : undefined,
        await checkChain(),
      ].filter((reason) => reason);
      const list = warnings.list();
      if (list.length > 0) needs.refreshWarnings();
      const details = {
        ...(reasons.length > 0 && { reasons }),
        ...(list.length > 0 && { warnings: list }),
      };
      const status = reasons.length === 0 ? 200 : 503;
      return respondJson(status, {
        status: status === 200 ? "ok" : "unavailable",
        ...(options.details && details),
      });
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
