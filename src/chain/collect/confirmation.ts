import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import { memoize } from "../../upstream/memoize.ts";
import type { Rpc, SignatureStatus } from "../rpc/rpc-client.ts";
import type { TransactionError } from "../rpc/transaction-error.ts";
import type { StoredTransaction } from "./account-lock.ts";
import { createSignaturePoller } from "./signature-poller.ts";

/** How a transaction ended: in a block, whether it succeeded or failed there, or expired without ever landing. */
export type TransactionOutcome =
  | { readonly kind: "landed"; readonly err: TransactionError | null; readonly slot: number }
  | { readonly kind: "expired" };

const RESEND_MS = 2_000;
const READ_AGAIN_MS = 400;
/** One read of the newest finalized block serves all transactions in flight. */
const FINALIZED_MAX_AGE_MS = 1_000;

/**
 * Gets signed transactions confirmed.
 *
 * A node can lose a transaction, so the same bytes are sent every two seconds; sending them twice is harmless,
 * because the chain executes a signature once. A transaction may be replaced by a new one only when it can
 * never land, or the account would be collected twice. Two things prove that together. First, the finalized
 * block height is past the last one at which its blockhash is valid, so no later block takes it; a confirmed
 * height is not enough, because that fork may still be dropped. Second, a search of the whole history finds
 * no status, and its answer is from a node that has seen that finalized slot; a node that is behind does not
 * know yet what landed in the last blocks. Failed calls prove nothing and are repeated.
 */
export function createConfirmation({ rpc, log }: { rpc: Rpc; log: Logger }) {
  const watchSignature = createSignaturePoller({ rpc, log });
  const getFinalizedBlock = memoize(rpc.getFinalizedBlock, FINALIZED_MAX_AGE_MS);

  /** Undefined for a call that failed: the caller repeats it. */
  async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
    try {
      return await call;
    } catch (error) {
      log.debug({ err: error }, "a call to the chain failed while a transaction was in flight");
      return undefined;
    }
  }

  /** Undefined: the transaction can still land. */
  async function findOutcome(
    signature: string,
    lastValidBlockHeight: number,
  ): Promise<TransactionOutcome | undefined> {
    const { blockHeight, absoluteSlot } = await getFinalizedBlock();
    if (blockHeight <= lastValidBlockHeight) return undefined;
    const { statuses, slot } = await rpc.getSignatureStatuses([signature], {
      searchTransactionHistory: true,
    });
    const [status] = statuses;
    if (status) return status.confirmed ? toLanded(status) : undefined;
    return slot >= absoluteSlot ? { kind: "expired" } : undefined;
  }

  return {
    /**
     * Sends a transaction until it has landed or expired, however long that takes. A transaction that may
     * have been sent before is given two seconds to land first. Never rejects.
     */
    async confirm(
      { base64, signature, lastValidBlockHeight }: StoredTransaction,
      { mayBeSent }: { mayBeSent: boolean },
    ): Promise<TransactionOutcome> {
      const { confirmed, stop } = watchSignature(signature);
      const landed = confirmed.then(toLanded);
      try {
        for (let shouldSend = !mayBeSent; ; shouldSend = true) {
          if (shouldSend) void orUndefined(rpc.sendTransaction(base64));
          const outcome =
            (await Promise.race([landed, sleep(RESEND_MS)])) ??
            (await Promise.race([landed, orUndefined(findOutcome(signature, lastValidBlockHeight))]));
          if (outcome) return outcome;
        }
      } finally {
        stop();
      }
    },

    /**
     * A landed transaction with its balances. Nodes may know it only a moment after its confirmation;
     * undefined when they take longer than `timeoutMs`.
     */
    async readLanded(signature: string, timeoutMs: number) {
      const giveUpAt = performance.now() + timeoutMs;
      for (;;) {
        const transaction = await orUndefined(rpc.getTransaction(signature));
        if (transaction || performance.now() > giveUpAt) return transaction;
        await sleep(READ_AGAIN_MS);
      }
    },
  };
}

function toLanded({ err, slot }: SignatureStatus): TransactionOutcome {
  return { kind: "landed", err, slot };
}
