import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { MAX_SIGNATURES_PER_CALL, type SignatureStatus } from "../rpc/signature-status.ts";

/** About two slots. */
export const POLL_MS = 400;

/**
 * Calls `onConfirmed` when the transaction is confirmed, whether it succeeded or failed, until the returned function
 * is called. Not a promise: one that never settles would keep the handlers of everyone who waits for it.
 */
type WatchSignature = (signature: string, onConfirmed: (status: SignatureStatus) => void) => () => void;

/** Polls the statuses of all open signatures together, up to 256 per call; idle without open signatures. */
export function createSignaturePoller({
  rpc,
  log,
  pollMs = POLL_MS,
}: {
  rpc: Rpc;
  log: Logger;
  pollMs?: number | undefined;
}): WatchSignature {
  const open = new Map<string, (status: SignatureStatus) => void>();
  let isPolling = false;

  async function poll(): Promise<void> {
    isPolling = true;
    while (open.size > 0) {
      await sleep(pollMs);
      const signatures = [...open.keys()];
      for (let i = 0; i < signatures.length; i += MAX_SIGNATURES_PER_CALL) {
        await readStatuses(signatures.slice(i, i + MAX_SIGNATURES_PER_CALL));
      }
    }
    isPolling = false;
  }

  async function readStatuses(signatures: readonly string[]): Promise<void> {
    try {
      const { statuses } = await rpc.getSignatureStatuses(signatures, { searchTransactionHistory: false });
      signatures.forEach((signature, i) => {
        const status = statuses[i];
        if (status?.confirmed) open.get(signature)?.(status);
      });
    } catch (error) {
      log.debug({ err: error }, "the statuses of open transactions cannot be read: trying again");
    }
  }

  return (signature, onConfirmed) => {
    open.set(signature, onConfirmed);
    if (!isPolling) void poll();
    return () => {
      open.delete(signature);
    };
  };
}
