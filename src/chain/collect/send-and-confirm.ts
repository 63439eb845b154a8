import { setTimeout as sleep } from "node:timers/promises";
import type { Rpc } from "../rpc/rpc-client.ts";
import type { LandedTransaction } from "../rpc/transactions.ts";
import {
  MAX_SIGNATURES_PER_CALL,
  type ExpiryReport,
  type SignatureStatus,
} from "../rpc/signature-status.ts";
import type { TransactionError } from "../rpc/transaction-error.ts";
import type { StoredTransaction } from "./claims.ts";
import { messageOf } from "./message/message.ts";
import { addMs, monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";

/** The transaction is in a block. */
export interface Landed {
  readonly kind: "landed";
  readonly err: TransactionError | null;
  /** 0 if no node reports a credible slot. */
  readonly slot: number;
  /** Set if already read. */
  readonly transaction?: LandedTransaction | undefined;
}

export type TransactionOutcome =
  | Landed
  /** The transaction did not land and never can. `agreeing`: how many endpoints reported this. */
  | { readonly kind: "expired"; readonly agreeing: number }
  /** The blockhash has expired, but too few endpoints agree on whether the transaction landed. */
  | { readonly kind: "unknown" };

/** Tests pass shorter waits. The defaults are for production. */
export interface ConfirmationWaits {
  /** The wait between two reads of the statuses of all open transactions. */
  readonly pollMs?: number | undefined;
  /** The wait between two sends of the same bytes. */
  readonly resendMs?: number | undefined;
  /** The wait between two attempts to read a landed transaction. */
  readonly rereadMs?: number | undefined;
  /**
   * How long endpoints may take to agree, after one of them first reports that the blockhash has
   * expired.
   */
  readonly agreeMs?: number | undefined;
}

/** About two slots. */
export const POLL_MS = 400;
const RESEND_MS = 2_000;
const REREAD_MS = 400;
/** How long a read of a transaction at every endpoint waits for slow or late endpoints. */
const READ_AT_EACH_MS = 2_000;
/**
 * How many endpoints must agree that a transaction landed or expired, if that many are configured.
 */
const MIN_AGREEING = 2;
const AGREE_MS = 20_000;

export type Confirmation = ReturnType<typeof createConfirmation>;

/**
 * Sends signed transactions until their outcome is known.
 *
 * A node can lose a transaction, so the same bytes are sent every two seconds. Sending them twice
 * is harmless, because the chain executes the same bytes only once. A transaction is replaced only
 * when it can never land.
 *
 * A transaction has landed if an endpoint returns the transaction itself, or if two endpoints
 * report the same final result. It has expired if two endpoints prove that it did not land
 * (`getExpiryReports`), and no endpoint contradicts them. With one configured endpoint, one report
 * is enough. If the endpoints do not agree within 20 s, the outcome is unknown: a stuck or silent
 * endpoint must not keep an account locked. Failed calls prove nothing and are retried.
 */
export function createConfirmation(needs: ConfirmationWaits & { rpc: Rpc }) {
  const { rpc } = needs;
  const {
    pollMs = POLL_MS,
    resendMs = RESEND_MS,
    rereadMs = REREAD_MS,
    agreeMs = AGREE_MS,
  } = needs;
  /**
   * By signature of an open transaction: what to call when it is final. Not promises: a promise
   * that never settles would retain the handlers of all its waiters.
   */
  const open = new Map<string, (status: SignatureStatus) => void>();
  let isPolling = false;
  const confirming = new Map<string, Promise<TransactionOutcome>>();
  const reading = new Map<string, Promise<LandedTransaction | undefined>>();

  /** Reads the statuses of all open transactions together, while there are any. */
  async function poll(): Promise<void> {
    if (isPolling) return;
    isPolling = true;
    while (open.size > 0) {
      await sleep(pollMs);
      const signatures = [...open.keys()];
      for (let i = 0; i < signatures.length; i += MAX_SIGNATURES_PER_CALL) {
        const some = signatures.slice(i, i + MAX_SIGNATURES_PER_CALL);
        const answer = await orUndefined(
          rpc.getSignatureStatuses(some, { searchTransactionHistory: false }),
        );
        answer?.forEach((status, j) => {
          if (status?.isFinal) open.get(some[j]!)?.(status);
        });
      }
    }
    isPolling = false;
  }

  /**
   * Checks, without retries, one endpoint's report that a transaction is final. With several
   * endpoints, returns undefined unless the transaction itself or a second endpoint supports the
   * report.
   */
  async function supportStatus(
    { base64, signature }: StoredTransaction,
    status: SignatureStatus,
  ): Promise<Landed | undefined> {
    if (rpc.endpointCount < MIN_AGREEING) return toLanded(status);
    const accountKeys = accountKeysOf(base64);
    const transaction = accountKeys && (await readShared(signature, accountKeys));
    if (transaction)
      return { kind: "landed", err: transaction.err, slot: transaction.slot, transaction };
    const statuses = await rpc.getStatusAtEach(signature);
    const final = statuses.flatMap((each) => (each?.isFinal ? [each] : []));
    const groups = Map.groupBy(final, ({ err }) => JSON.stringify(err));
    const agreeing = [...groups.values()].find(({ length }) => length >= MIN_AGREEING);
    return (
      agreeing && { ...toLanded(agreeing[0]!), slot: Math.min(...agreeing.map(({ slot }) => slot)) }
    );
  }

  /**
   * Returns a function that asks all endpoints for the outcome, and returns undefined while there
   * is none.
   */
  function createOutcomeCheck(transaction: StoredTransaction) {
    const { base64, signature, lastValidBlockHeight } = transaction;
    const blockhash = messageOf(base64)?.recentBlockhash;
    /**
     * By endpoint: whether the blockhash has expired, according to the last report. Ignores
     * `silent` reports.
     */
    const isPast: boolean[] = [];
    let giveUpAt: MonotonicTime | undefined;

    return async (): Promise<TransactionOutcome | undefined> => {
      const reports = await rpc.getExpiryReports({ signature, blockhash, lastValidBlockHeight });
      const found = reports.find((report) => report.kind === "found" && report.status.isFinal);
      const landed =
        found?.kind === "found" ? await supportStatus(transaction, found.status) : undefined;
      if (landed) return landed;

      const count = (kind: ExpiryReport["kind"]) =>
        reports.filter((report) => report.kind === kind).length;
      const agreeing = count("absent");
      const isDisputed = count("valid") + count("found") > 0;
      if (!isDisputed && agreeing >= Math.min(MIN_AGREEING, reports.length))
        return { kind: "expired", agreeing };

      reports.forEach(({ kind }, i) => {
        if (kind !== "silent") isPast[i] = kind !== "valid";
      });
      giveUpAt = isPast.includes(true) ? (giveUpAt ?? addMs(monotonicNow(), agreeMs)) : undefined;
      return giveUpAt !== undefined && monotonicNow() >= giveUpAt ? { kind: "unknown" } : undefined;
    };
  }

  async function sendAndConfirm(
    transaction: StoredTransaction,
    { maybeSent }: { maybeSent: boolean },
  ): Promise<TransactionOutcome> {
    const findOutcome = createOutcomeCheck(transaction);
    let landed: TransactionOutcome | undefined;
    let isChecking = false;
    let wake: (outcome: TransactionOutcome) => void = () => undefined;
    open.set(transaction.signature, (status) => {
      if (isChecking || landed) return;
      isChecking = true;
      void supportStatus(transaction, status).then((found) => {
        isChecking = false;
        if (!found) return;
        landed = found;
        wake(found);
      });
    });
    void poll();
    /** Resolves like `promise`, or with the outcome as soon as the transaction is final. */
    const orLanded = <T>(promise: Promise<T>): Promise<T | TransactionOutcome> =>
      new Promise((resolve) => {
        wake = resolve;
        if (landed) resolve(landed);
        else void promise.then(resolve);
      });
    try {
      for (let shouldSend = !maybeSent; ; shouldSend = true) {
        if (shouldSend) void orUndefined(rpc.sendTransaction(transaction.base64));
        const outcome =
          (await orLanded(sleep(resendMs))) ?? (await orLanded(orUndefined(findOutcome())));
        if (outcome) return outcome;
      }
    } finally {
      open.delete(transaction.signature);
    }
  }

  /** Makes one attempt. A failed attempt ends only when the next one may start. */
  async function readOnce(signature: string, accountKeys: readonly string[]) {
    const transaction = await orUndefined(rpc.getTransaction(signature, accountKeys));
    if (!transaction) await sleep(rereadMs);
    return transaction;
  }

  const readShared = (signature: string, accountKeys: readonly string[]) =>
    joinInFlight(reading, signature, () => readOnce(signature, accountKeys));

  return {
    /**
     * Returns undefined unless the endpoints now report the transaction as landed. Throws {@link
     * RpcError}.
     */
    async findLanded(transaction: StoredTransaction): Promise<Landed | undefined> {
      const options = { searchTransactionHistory: true };
      const [status] = await rpc.getSignatureStatuses([transaction.signature], options);
      return status?.isFinal ? supportStatus(transaction, status) : undefined;
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
     * Reads a landed transaction with its balances; undefined after `timeoutMs`. Retries, because a
     * node may return a transaction only some time after it is final. Concurrent reads of the
     * same transaction share the attempts.
     */
    async readLanded(
      { base64, signature }: StoredTransaction,
      timeoutMs: number,
    ): Promise<LandedTransaction | undefined> {
      const accountKeys = accountKeysOf(base64);
      const giveUpAt = addMs(monotonicNow(), timeoutMs);
      while (accountKeys) {
        const landed = await readShared(signature, accountKeys);
        if (landed || monotonicNow() > giveUpAt) return landed;
      }
      return undefined;
    },

    /**
     * Reads a landed transaction from each endpoint, again while fewer return it than must agree,
     * for about two seconds.
     */
    async readAtEach({ base64, signature }: StoredTransaction): Promise<LandedTransaction[]> {
      const accountKeys = accountKeysOf(base64) ?? [];
      const giveUpAt = addMs(monotonicNow(), READ_AT_EACH_MS);
      for (;;) {
        const found = await rpc.getTransactionAtEach(signature, accountKeys, READ_AT_EACH_MS);
        const isEnough = found.length >= Math.min(MIN_AGREEING, rpc.endpointCount);
        if (isEnough || monotonicNow() > giveUpAt) return found;
        await sleep(rereadMs);
      }
    },
  };
}

/** Resolves to undefined if the call fails; the caller then retries. */
function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
  return call.catch(() => undefined);
}

/** Returns the key's pending promise, or starts one. */
function joinInFlight<T>(
  pending: Map<string, Promise<T>>,
  key: string,
  start: () => Promise<T>,
): Promise<T> {
  const promise =
    pending.get(key) ??
    start().finally(() => {
      pending.delete(key);
    });
  pending.set(key, promise);
  return promise;
}

export function hasAccount({ base64 }: StoredTransaction, address: string): boolean {
  return accountKeysOf(base64)?.includes(address) ?? false;
}

function accountKeysOf(base64: string): string[] | undefined {
  return messageOf(base64)?.staticAccountKeys.map((key) => key.toBase58());
}

function toLanded({ err, slot }: SignatureStatus): Landed {
  return { kind: "landed", err, slot };
}
