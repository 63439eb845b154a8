import { setTimeout as sleep } from "node:timers/promises";
import { joinInFlight } from "../../store/memoize.ts";
import { monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import type { OutcomeWaits, TrackedTransaction, TransactionOutcome } from "../rpc/outcome.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { accountKeysOf, messageOf } from "../units/message.ts";
import type { StoredTransaction } from "./claims.ts";

/** The limit of `getSignatureStatuses`. */
const MAX_SIGNATURES_PER_CALL = 256;
/** The wait between two reads of statuses, as a part of the time since the last send. */
const POLL_GROWTH = 1 / 4;
export const WAITS = {
  /**
   * From a transaction's first send until it should be final. With slots of 200 ms, and blocks that
   * are final 150 ms later, most transactions are by then.
   */
  finalityMs: 320,
  /** The shortest wait between two reads of the statuses of all open transactions. */
  pollMs: 100,
  /** The wait between two sends of the same bytes. */
  resendMs: 2_000,
};
/** Tests pass shorter waits. */
export type ConfirmationWaits = OutcomeWaits & Readonly<Partial<typeof WAITS>>;

export type Confirmation = ReturnType<typeof createConfirmation>;

/**
 * Sends signed transactions until their outcome is known: `decide` says what the endpoints' reports
 * mean.
 *
 * A node can lose a transaction, so the same bytes are sent every two seconds. Sending them twice
 * is harmless, because the chain executes the same bytes only once. A transaction is replaced only
 * when it can never land. Failed calls prove nothing and are retried.
 */
export function createConfirmation(needs: ConfirmationWaits & { rpc: Rpc }) {
  const { rpc } = needs;
  const { finalityMs, pollMs, resendMs } = { ...WAITS, ...needs };
  /** When each transaction was sent that was not final at its first look, by signature. */
  const open = new Map<string, MonotonicTime>();
  let polling: Promise<ReadonlySet<string>> | undefined;
  const confirming = new Map<string, Promise<TransactionOutcome>>();

  /** Reads the statuses of all open transactions together; returns those that have landed. */
  async function readStatuses(): Promise<ReadonlySet<string>> {
    const youngestMs = Math.min(...[...open.values()].map(msSince));
    await sleep(Math.min(Math.max(pollMs, youngestMs * POLL_GROWTH), resendMs));
    // The oldest: those that have landed make room for the others.
    const signatures = [...open.keys()].slice(0, MAX_SIGNATURES_PER_CALL);
    return (await orUndefined(rpc.findLanded(signatures))) ?? new Set();
  }

  /** Waits for the next statuses, which all open transactions share. */
  const poll = () =>
    (polling ??= readStatuses().finally(() => {
      polling = undefined;
    }));

  async function sendAndConfirm(
    transaction: StoredTransaction,
    maybeSent: boolean,
  ): Promise<TransactionOutcome> {
    const { base64, signature } = transaction;
    const { look, lookForExpiry } = rpc.trackOutcome(toTracked(transaction));
    const sentAt = monotonicNow();
    let outcome: TransactionOutcome | undefined;

    /** Looks when it should be final, and again once an endpoint says that it has landed. */
    async function watch(): Promise<void> {
      if (!maybeSent) await sleep(finalityMs);
      let found = await look();
      let hasLanded = false;
      while (!found && !outcome) {
        open.set(signature, sentAt);
        if (hasLanded) await sleep(pollMs);
        else hasLanded = (await poll()).has(signature);
        if (hasLanded) found = await look();
      }
      open.delete(signature);
      outcome ??= found;
    }

    async function resend(): Promise<void> {
      for (let shouldSend = !maybeSent; ; shouldSend = true) {
        if (shouldSend) void orUndefined(rpc.sendTransaction(base64));
        await sleep(resendMs);
        if (outcome) return;
        const found = await lookForExpiry();
        outcome ??= found;
        if (outcome) return;
      }
    }

    await Promise.race([watch(), resend()]);
    return outcome!;
  }

  return {
    /**
     * Resends a transaction until it has an outcome, without a time limit. With `maybeSent`, looks
     * at once, and waits two seconds before it sends. Concurrent calls for the same transaction
     * share one confirmation. Never rejects.
     */
    confirm: (transaction: StoredTransaction, maybeSent: boolean): Promise<TransactionOutcome> =>
      joinInFlight(confirming, transaction.signature, () => sendAndConfirm(transaction, maybeSent)),
  };
}

function toTracked({ base64, ...rest }: StoredTransaction): TrackedTransaction {
  const blockhash = messageOf(base64)?.recentBlockhash;
  return { ...rest, blockhash, accountKeys: accountKeysOf(base64) };
}

/** Resolves to undefined if the call fails; the caller then retries. */
function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
  return call.catch(() => undefined);
}
