import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../observability/log.ts";
import { memoize } from "../../upstream/memoize.ts";
import type { Rpc, SignatureStatus } from "../rpc/rpc-client.ts";
import type { TransactionError } from "../rpc/transaction-error.ts";
import type { StoredTransaction } from "./account-lock.ts";
import { createSignaturePoller } from "./signature-poller.ts";

/** A transaction's outcome: it landed in a block, successfully or with `err`, or expired without landing. */
export type TransactionOutcome =
  | { readonly kind: "landed"; readonly err: TransactionError | null; readonly slot: number }
  /** It never landed and never can; nothing was moved. `agreeing`: how many endpoints said so. */
  | { readonly kind: "expired"; readonly agreeing: number }
  /** Its blockhash has certainly expired, so it can no longer land, but the endpoints do not agree on whether it landed. */
  | { readonly kind: "unknown" };

const RESEND_MS = 2_000;
const REREAD_MS = 400;
/** All transactions in flight share one read of the newest finalized block. */
const FINALIZED_MAX_AGE_MS = 1_000;

/**
 * Gets signed transactions confirmed.
 *
 * A node can lose a transaction, so the same bytes are sent every two seconds; sending them twice is harmless,
 * because the chain executes a signature once. A new transaction may replace it only when it can never land;
 * otherwise both could land and cost a fee each. Two conditions together prove that. First, the finalized block
 * height is past the last height at which its blockhash is valid, so no later block can include it; a confirmed
 * height is not enough, because that fork may still be dropped. Second, a search of the whole history finds no
 * status, on a node that has seen that finalized slot; a node that is behind may not know the last blocks yet.
 * Failed calls prove nothing and are retried.
 */
export function createConfirmation({ rpc, log }: { rpc: Rpc; log: Logger }) {
  const watchSignature = createSignaturePoller({ rpc, log });
  const getFinalizedBlock = memoize(rpc.getFinalizedBlock, FINALIZED_MAX_AGE_MS);

  /** Undefined for a failed call, which the caller retries. */
  async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
    try {
      return await call;
    } catch (error) {
      log.debug({ err: error }, "a call to the chain failed while a transaction was in flight");
      return undefined;
    }
  }

  /** Undefined while the transaction may still land. */
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
    return slot >= absoluteSlot ? { kind: "expired", agreeing: 1 } : undefined;
  }

  return {
    /**
     * Sends a transaction until it has landed or expired, however long that takes. With `maybeSent`, it waits
     * two seconds for the transaction to land before sending it. Never rejects.
     */
    async confirm(
      { base64, signature, lastValidBlockHeight }: StoredTransaction,
      { maybeSent }: { maybeSent: boolean },
    ): Promise<TransactionOutcome> {
      const { confirmed, stop } = watchSignature(signature);
      const landed = confirmed.then(toLanded);
      try {
        for (let shouldSend = !maybeSent; ; shouldSend = true) {
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
     * A landed transaction with its balances. Retries, because a node may return it only some time after it is
     * confirmed; undefined after `timeoutMs`.
     */
    async readLanded({ signature }: StoredTransaction, timeoutMs: number) {
      const giveUpAt = performance.now() + timeoutMs;
      for (;;) {
        const transaction = await orUndefined(rpc.getTransaction(signature));
        if (transaction || performance.now() > giveUpAt) return transaction;
        await sleep(REREAD_MS);
      }
    },
  };
}

function toLanded({ err, slot }: SignatureStatus): TransactionOutcome {
  return { kind: "landed", err, slot };
}
