import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import { createRecent } from "../../upstream/memoize.ts";
import { createConfirmations } from "./signature-poller.ts";
import type { KeptTransaction } from "./account-lock.ts";
import type { Rpc, SignatureStatus, TransactionError } from "../rpc/rpc-client.ts";

/** How a transaction ended: in a block, well or badly, or past the time in which it could get into one. */
export type Fate =
  | { readonly kind: "landed"; readonly err: TransactionError | null; readonly slot: number }
  | { readonly kind: "dead" };

const RESEND_MS = 2_000;
const READ_AGAIN_MS = 400;
/** One look at the newest finalized block serves all transactions that are under way. */
const FINALIZED_MAX_AGE_MS = 1_000;

/** Brings signed transactions into the chain and says what became of them. */
export function createLanding({ rpc, log }: { rpc: Rpc; log: Logger }) {
  const watch = createConfirmations({ rpc, log });
  const getFinalizedBlock = createRecent(rpc.getFinalizedBlock, FINALIZED_MAX_AGE_MS);

  /** For calls that are simply made again: a failure tells nothing about the transaction. */
  async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
    try {
      return await call;
    } catch (error) {
      log.debug({ err: error }, "a call to the chain failed while a transaction was under way");
      return undefined;
    }
  }

  /**
   * A transaction is dead once its blockhash has expired in a finalized block, and a node that has seen
   * that block finds the transaction nowhere in its history. Undefined: still open.
   */
  async function findFate(signature: string, lastValidBlockHeight: number): Promise<Fate | undefined> {
    const { blockHeight, absoluteSlot } = await getFinalizedBlock();
    if (blockHeight <= lastValidBlockHeight) return undefined;
    const { statuses, slot } = await rpc.getSignatureStatuses([signature], {
      searchTransactionHistory: true,
    });
    const [status] = statuses;
    if (status) return status.confirmed ? toLanded(status) : undefined;
    return slot >= absoluteSlot ? { kind: "dead" } : undefined;
  }

  return {
    /**
     * Sends the same bytes again and again until the chain confirms them or never can any more; first of
     * all gives them some time when they may have been sent already.
     */
    async land(
      { base64, signature, lastValidBlockHeight }: KeptTransaction,
      mayBeSent: boolean,
    ): Promise<Fate> {
      const { confirmed, stop } = watch(signature);
      const landed = confirmed.then(toLanded);
      try {
        for (let isWaiting = mayBeSent; ; isWaiting = false) {
          if (!isWaiting) void orUndefined(rpc.sendTransaction(base64));
          const fate =
            (await Promise.race([landed, sleep(RESEND_MS)])) ??
            (await Promise.race([landed, orUndefined(findFate(signature, lastValidBlockHeight))]));
          if (fate) return fate;
        }
      } finally {
        stop();
      }
    },

    /**
     * A landed transaction with its balances. Nodes may need a moment after its confirmation until they
     * know it; undefined when they need longer than `timeoutMs`.
     */
    async readLanded(signature: string, timeoutMs: number) {
      const giveUpAt = performance.now() + timeoutMs;
      for (;;) {
        const found = await orUndefined(rpc.getTransaction(signature));
        if (found || performance.now() > giveUpAt) return found;
        await sleep(READ_AGAIN_MS);
      }
    },
  };
}

function toLanded({ err, slot }: SignatureStatus): Fate {
  return { kind: "landed", err, slot };
}
