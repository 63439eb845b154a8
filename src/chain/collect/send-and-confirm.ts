import { setTimeout as sleep } from "node:timers/promises";
import { joinInFlight } from "../../store/memoize.ts";
import { addMs, monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { untilAborted } from "../rpc/deadline.ts";
import {
  createOutcomeChecks,
  type OutcomeWaits,
  type TrackedTransaction,
  type TransactionOutcome,
} from "../rpc/outcome-checks.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { MAX_SIGNATURES_PER_CALL, type SignatureStatus } from "../rpc/signature-status.ts";
import type { CountedTransaction, Landed } from "../rpc/decide-outcome.ts";
import { createFinalityTime, type FinalityWaits } from "../slots/finality-time.ts";
import { accountKeysOf, messageOf } from "../units/message.ts";
import type { StoredTransaction } from "./claims.ts";

/** Tests pass shorter waits. The defaults are for production. */
export interface ConfirmationWaits extends FinalityWaits, OutcomeWaits {
  /** The shortest wait between two reads of the statuses of all open transactions. */
  readonly pollMs?: number | undefined;
  /** The wait between two sends of the same bytes. */
  readonly resendMs?: number | undefined;
  /** The wait between two attempts to read a landed transaction. */
  readonly rereadMs?: number | undefined;
}

export const POLL_MS = 100;
/** The wait between two reads of statuses, as a part of the time since the last send. */
const POLL_GROWTH = 1 / 4;
const RESEND_MS = 2_000;
const REREAD_MS = 400;

export type Confirmation = ReturnType<typeof createConfirmation>;

/**
 * Sends signed transactions until their outcome is known.
 *
 * A node can lose a transaction, so the same bytes are sent every two seconds. Sending them twice
 * is harmless, because the chain executes the same bytes only once. A transaction is replaced only
 * when it can never land.
 *
 * `decide` says what the endpoints' reports mean. While they do not agree on whether the
 * transaction landed, it is sent again, and nothing else is signed. The outcome is unknown if they
 * still do not agree when the blockhash has certainly expired, and 20 s after the first report that
 * it has: a stuck or silent endpoint must not keep an account locked. Failed calls prove nothing
 * and are retried.
 */
export function createConfirmation(needs: ConfirmationWaits & { rpc: Rpc }) {
  const { rpc } = needs;
  const { pollMs = POLL_MS, resendMs = RESEND_MS, rereadMs = REREAD_MS } = needs;
  const finalityTime = createFinalityTime(needs);
  /** The transactions that were not final at the first look, by signature. */
  const open = new Map<string, OpenTransaction>();
  let isPolling = false;
  const confirming = new Map<string, Promise<TransactionOutcome>>();
  const checksOf = createOutcomeChecks(needs);

  /** Reads the statuses of all open transactions together, at growing steps. */
  async function poll(): Promise<void> {
    if (isPolling) return;
    isPolling = true;
    while (open.size > 0) {
      const youngestMs = Math.min(...[...open.values()].map(({ sentAt }) => msSince(sentAt)));
      await sleep(Math.min(Math.max(pollMs, youngestMs * POLL_GROWTH), resendMs));
      const signatures = [...open.keys()];
      for (let i = 0; i < signatures.length; i += MAX_SIGNATURES_PER_CALL) {
        const some = signatures.slice(i, i + MAX_SIGNATURES_PER_CALL);
        const answer = await orUndefined(
          rpc.getSignatureStatuses(some, { searchTransactionHistory: false }),
        );
        some.forEach((signature, j) => {
          const status = answer?.[j];
          if (status?.isFinal) void open.get(signature)?.look(status);
        });
      }
    }
    isPolling = false;
  }

  async function sendAndConfirm(
    transaction: StoredTransaction,
    { maybeSent }: { maybeSent: boolean },
  ): Promise<TransactionOutcome> {
    const { base64, signature } = transaction;
    const { checkLanding, findOutcome } = checksOf(toTracked(transaction));
    const sentAt = monotonicNow();
    /** Aborts with the outcome once the transaction has landed. */
    const over = new AbortController();
    const orLanded = <T>(promise: Promise<T>) => untilAborted(promise, over.signal);

    /** `status`: undefined at the first look. */
    async function look(status?: SignatureStatus): Promise<void> {
      const landing = await checkLanding(status);
      if (!landing || over.signal.aborted) return;
      if (!maybeSent) finalityTime.learn({ isTooEarly: !!status });
      over.abort(landing);
    }

    async function lookFirst(): Promise<void> {
      await orLanded(sleep(finalityTime.ms()));
      await orLanded(Promise.race([look(), sleep(rereadMs)]));
      open.set(signature, { sentAt, look });
      void poll();
    }

    void orUndefined(lookFirst());
    try {
      for (let shouldSend = !maybeSent; ; shouldSend = true) {
        if (shouldSend) void orUndefined(rpc.sendTransaction(base64));
        await orLanded(sleep(resendMs));
        const outcome = await orLanded(orUndefined(findOutcome()));
        if (outcome) return outcome;
      }
    } catch (error) {
      if (!over.signal.aborted) throw error;
      return over.signal.reason as Landed;
    } finally {
      over.abort();
      open.delete(signature);
    }
  }

  return {
    /**
     * Returns undefined unless the endpoints now report the transaction as landed. Throws {@link
     * RpcError}.
     */
    async findLanded(transaction: StoredTransaction): Promise<Landed | undefined> {
      const options = { searchTransactionHistory: true };
      const [status] = await rpc.getSignatureStatuses([transaction.signature], options);
      return status?.isFinal ? checksOf(toTracked(transaction)).checkLanding(status) : undefined;
    },

    /**
     * Resends a transaction until it has an outcome, without a time limit. With `maybeSent`, first
     * waits two seconds for the transaction to land. Concurrent calls for the same transaction
     * share one confirmation. Never rejects.
     */
    confirm: (
      transaction: StoredTransaction,
      options: { maybeSent: boolean },
    ): Promise<TransactionOutcome> =>
      joinInFlight(confirming, transaction.signature, () => sendAndConfirm(transaction, options)),

    /**
     * Reads a landed transaction with its balances; undefined if they are not certain after
     * `timeoutMs`. Retries, because a node may return a transaction only some time after it is
     * final. Concurrent reads of the same transaction share the attempts.
     */
    async readLanded(
      transaction: StoredTransaction,
      outcome: Landed,
      timeoutMs: number,
    ): Promise<CountedTransaction | undefined> {
      const read = checksOf(toTracked(transaction)).createAmountsReader(outcome);
      const giveUpAt = addMs(monotonicNow(), timeoutMs);
      for (;;) {
        const landing = await read();
        const isOver = monotonicNow() > giveUpAt || !messageOf(transaction.base64);
        if (landing || isOver) return landing;
        await sleep(rereadMs);
      }
    },
  };
}

interface OpenTransaction {
  readonly sentAt: MonotonicTime;
  readonly look: (status: SignatureStatus) => Promise<void>;
}

function toTracked({ base64, ...rest }: StoredTransaction): TrackedTransaction {
  const blockhash = messageOf(base64)?.recentBlockhash;
  return { ...rest, blockhash, accountKeys: accountKeysOf(base64) };
}

/** Resolves to undefined if the call fails; the caller then retries. */
function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
  return call.catch(() => undefined);
}
