import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../log.ts";
import type { SignedTransaction } from "./fee-payer.ts";
import type { Rpc, TransactionError } from "./rpc.ts";

/** How a transaction ended: in a block, well or badly, or past the time in which it could get into one. */
export type Fate =
  { readonly kind: "landed"; readonly err: TransactionError | null } | { readonly kind: "dead" };

/** About one slot. */
const POLL_MS = 400;
const RESEND_MS = 2_000;

/** Brings signed transactions into the chain and says what became of them. */
export function createLanding({ rpc, log }: { rpc: Rpc; log: Logger }) {
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
    const finalized = await rpc.getFinalizedBlock();
    if (finalized.blockHeight <= lastValidBlockHeight) return undefined;
    const { status, slot } = await rpc.getSignatureStatus(signature, { searchTransactionHistory: true });
    if (status) return status.confirmed ? { kind: "landed", err: status.err } : undefined;
    return slot >= finalized.absoluteSlot ? { kind: "dead" } : undefined;
  }

  return {
    /** Sends the same bytes again and again until the chain confirms them or never can any more. */
    async land({ base64, signature }: SignedTransaction, lastValidBlockHeight: number): Promise<Fate> {
      void orUndefined(rpc.sendTransaction(base64));
      let sentAt = performance.now();
      for (;;) {
        await sleep(POLL_MS);
        const status = rpc.getSignatureStatus(signature, { searchTransactionHistory: false });
        const answer = await orUndefined(status);
        if (answer?.status?.confirmed) return { kind: "landed", err: answer.status.err };
        if (performance.now() - sentAt < RESEND_MS) continue;

        const fate = await orUndefined(findFate(signature, lastValidBlockHeight));
        if (fate) return fate;
        void orUndefined(rpc.sendTransaction(base64));
        sentAt = performance.now();
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
        await sleep(POLL_MS);
      }
    },
  };
}
