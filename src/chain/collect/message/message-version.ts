import type { Logger } from "../../../observability/log.ts";
import type { MessageVersion } from "./message.ts";
import { addMs, LONG_AGO, monotonicNow } from "../../../time/monotonic.ts";

/** How long messages stay legacy once the cluster seems to reject version 1. */
const LEGACY_MS = 3_600_000;
/** One is not enough: a transaction may expire for other reasons, such as a low price. */
const MAX_EXPIRED_IN_A_ROW = 2;

export type VersionChoice = ReturnType<typeof createVersionChoice>;

/**
 * Chooses version 1 for new messages, but legacy for an hour if every endpoint that answers refuses
 * version 1, or if two version 1 transactions in a row expire. The leaders may drop a transaction
 * that the endpoints accept.
 */
export function createVersionChoice({ log }: { log: Logger }) {
  let legacyUntil = LONG_AGO;
  let expiredInARow = 0;
  const current = (): MessageVersion => (monotonicNow() < legacyUntil ? "legacy" : 1);

  function useLegacy(reason: string): void {
    expiredInARow = 0;
    if (current() === "legacy") return;
    legacyUntil = addMs(monotonicNow(), LEGACY_MS);
    log.warn(
      `${reason}: collects use legacy transactions for an hour, which hold fewer accounts and cost more each`,
    );
  }

  return {
    current,

    /** Call when every endpoint that answers has refused a simulation because of its version. */
    refused(): void {
      useLegacy("all chain endpoints that answer refuse transactions of version 1");
    },

    /** Records the outcome of a version 1 transaction. */
    ended(outcome: "landed" | "expired"): void {
      expiredInARow = outcome === "expired" ? expiredInARow + 1 : 0;
      if (expiredInARow >= MAX_EXPIRED_IN_A_ROW)
        useLegacy(`${MAX_EXPIRED_IN_A_ROW} transactions of version 1 in a row have expired`);
    },
  };
}
