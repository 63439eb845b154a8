import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import { MAX_SIGNATURES_PER_CALL, type Rpc, type SignatureStatus } from "../rpc/rpc-client.ts";

/** About one slot. */
const POLL_MS = 400;

/** A polled signature. */
interface Watch {
  /** Resolves when the transaction is confirmed, whether it succeeded or failed. Never rejects. */
  readonly confirmed: Promise<SignatureStatus>;
  stop(): void;
}

/** Polls the statuses of all open signatures together, up to 256 per call; idle without open signatures. */
export function createSignaturePoller({ rpc, log }: { rpc: Rpc; log: Logger }): (signature: string) => Watch {
  const open = new Map<string, (status: SignatureStatus) => void>();
  let isPolling = false;

  async function poll(): Promise<void> {
    isPolling = true;
    while (open.size > 0) {
      await sleep(POLL_MS);
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

  return (signature) => {
    const { promise, resolve } = Promise.withResolvers<SignatureStatus>();
    open.set(signature, resolve);
    if (!isPolling) void poll();
    return {
      confirmed: promise,
      stop() {
        open.delete(signature);
      },
    };
  };
}
