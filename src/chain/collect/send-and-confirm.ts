import { setTimeout as sleep } from "node:timers/promises";
import type { Rpc } from "../rpc/rpc-client.ts";
import {
  MAX_SIGNATURES_PER_CALL,
  toFound,
  type ExpiryReport,
  type SignatureStatus,
  type TransactionReport,
} from "../rpc/signature-status.ts";
import type { StoredTransaction } from "./claims.ts";
import { accountKeysOf, messageOf } from "../units/message.ts";
import {
  addMs,
  monotonicNow,
  msBetween,
  msSince,
  type MonotonicTime,
} from "../../time/monotonic.ts";
import {
  decide,
  isSameOutcome,
  type CountedTransaction,
  type Landed,
} from "../rpc/transaction-outcome.ts";

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
  /** How long the other endpoints have to return a transaction that one endpoint returns. */
  readonly aloneMs?: number | undefined;
  /**
   * How long endpoints may take to agree, after one of them first reports that the blockhash has
   * expired.
   */
  readonly agreeMs?: number | undefined;
  /** The longest life of a blockhash, at the lowest credible rate of blocks. */
  readonly longestLifeMs?: number | undefined;
}

/** About two slots. */
export const POLL_MS = 400;
const RESEND_MS = 2_000;
const REREAD_MS = 400;
const ALONE_MS = 3_000;
const AGREE_MS = 20_000;
/** For how many blocks a blockhash is valid. */
const BLOCKHASH_BLOCKS = 150;
/** At one block per second, far below the chain's rate. */
const LONGEST_LIFE_MS = BLOCKHASH_BLOCKS * 1_000;

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
  const {
    pollMs = POLL_MS,
    resendMs = RESEND_MS,
    rereadMs = REREAD_MS,
    aloneMs = ALONE_MS,
    agreeMs = AGREE_MS,
    longestLifeMs = LONGEST_LIFE_MS,
  } = needs;
  /**
   * By signature of an open transaction: what to call when it is final. Not promises: a promise
   * that never settles would retain the handlers of all its waiters.
   */
  const open = new Map<string, (status: SignatureStatus) => void>();
  let isPolling = false;
  const confirming = new Map<string, Promise<TransactionOutcome>>();
  const reading = new Map<string, Promise<readonly TransactionReport[]>>();

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
   * Makes one attempt to read a transaction at two endpoints. An attempt without its amounts ends
   * only when the next one may start. Concurrent attempts for the same transaction are one.
   */
  function readReports({ base64, signature }: StoredTransaction) {
    const accountKeys = accountKeysOf(base64);
    return joinInFlight(reading, signature, async () => {
      if (!accountKeys) return [];
      const isEnough = (reports: readonly TransactionReport[]) => isCertain(decide(reports));
      const reports = await rpc.getLandingReports(signature, accountKeys, isEnough);
      if (!hasAmounts(decide(reports))) await sleep(rereadMs);
      return reports;
    });
  }

  /**
   * Returns a function that reads a transaction once, and decides. An endpoint that alone returns
   * the transaction counts once the others have not done so in all reads of some seconds.
   */
  function createReader(transaction: StoredTransaction, { hasLanded }: { hasLanded: boolean }) {
    let aloneSince: MonotonicTime | undefined;
    return async () => {
      const reports = await readReports(transaction);
      const decision = decide(reports);
      const alone = decide(reports, { isAloneOver: true, hasLanded });
      if (hasAmounts(decision) || !hasAmounts(alone)) {
        aloneSince = undefined;
        return decision;
      }
      aloneSince ??= monotonicNow();
      return msSince(aloneSince) >= aloneMs ? alone : decision;
    };
  }

  /**
   * Returns a function that returns undefined unless the endpoints now agree that the transaction
   * landed. It receives what one of them reports.
   */
  function createLandingCheck(transaction: StoredTransaction) {
    const read = createReader(transaction, { hasLanded: false });
    return async (status: Pick<SignatureStatus, "err" | "slot">): Promise<Landed | undefined> => {
      const isOnly = rpc.endpointCount === 1;
      const decision = isOnly ? decide([toFound(status)]) : await read();
      return decision.kind === "landed" ? decision : undefined;
    };
  }

  /**
   * Returns a function that asks all endpoints for the outcome, and returns undefined while there
   * is none.
   */
  function createOutcomeCheck(
    transaction: StoredTransaction,
    checkLanding: ReturnType<typeof createLandingCheck>,
  ) {
    const { base64, signature, lastValidBlockHeight } = transaction;
    const blockhash = messageOf(base64)?.recentBlockhash;
    /**
     * By endpoint: whether the blockhash has expired, according to the last report. Ignores
     * `silent` reports.
     */
    const isPast: boolean[] = [];
    let pastSince: MonotonicTime | undefined;
    const isLifeOver = createLifeCheck(longestLifeMs);

    return async (): Promise<TransactionOutcome | undefined> => {
      const answers = await rpc.getExpiryReports({ signature, blockhash, lastValidBlockHeight });
      const reports = answers.map(({ report }) => report);
      const found = reports.find((report) => report.kind === "found");
      const landed = found && (await checkLanding(found));
      if (landed) return landed;

      reports.forEach(({ kind }, i) => {
        if (kind !== "silent") isPast[i] = kind !== "valid";
      });
      pastSince = isPast.includes(true) ? (pastSince ?? monotonicNow()) : undefined;
      const decision = decide(reports, {
        isLifeOver: isLifeOver(answers),
        isAgreementOver: pastSince !== undefined && msSince(pastSince) >= agreeMs,
      });
      if (decision.kind === "undecided") return undefined;
      return decision.kind === "disputed" ? { kind: "unknown" } : decision;
    };
  }

  async function sendAndConfirm(
    transaction: StoredTransaction,
    { maybeSent }: { maybeSent: boolean },
  ): Promise<TransactionOutcome> {
    const checkLanding = createLandingCheck(transaction);
    const findOutcome = createOutcomeCheck(transaction, checkLanding);
    let landed: TransactionOutcome | undefined;
    let isChecking = false;
    let wake: (outcome: TransactionOutcome) => void = () => undefined;
    open.set(transaction.signature, (status) => {
      if (isChecking || landed) return;
      isChecking = true;
      void checkLanding(status).then((found) => {
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

  return {
    /**
     * Returns undefined unless the endpoints now report the transaction as landed. Throws {@link
     * RpcError}.
     */
    async findLanded(transaction: StoredTransaction): Promise<Landed | undefined> {
      const options = { searchTransactionHistory: true };
      const [status] = await rpc.getSignatureStatuses([transaction.signature], options);
      return status?.isFinal ? createLandingCheck(transaction)(status) : undefined;
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
      const read = createReader(transaction, { hasLanded: true });
      const giveUpAt = addMs(monotonicNow(), timeoutMs);
      while (messageOf(transaction.base64)) {
        const decision = await read();
        if (hasAmounts(decision) && isPossible(outcome, decision)) return decision.transaction;
        if (monotonicNow() > giveUpAt) return undefined;
      }
      return undefined;
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

type WithAmounts = Landed & { readonly transaction: CountedTransaction };
const hasAmounts = (decision: ReturnType<typeof decide>): decision is WithAmounts =>
  decision.kind === "landed" && decision.transaction !== undefined;
const isCertain = (decision: ReturnType<typeof decide>): boolean =>
  hasAmounts(decision) && decision.transaction.isCertain;
/** Whether what a later read returns can be the landed transaction. */
const isPossible = (outcome: Landed, later: WithAmounts): boolean =>
  later.transaction.isCertain || outcome.err === undefined || isSameOutcome(outcome, later);

/**
 * Returns a function that tells whether a blockhash has certainly expired. It receives all
 * endpoints' block heights, again and again. What counts is the lowest rate of blocks that any
 * endpoint has shown since this check was created, but at least one block a second: an endpoint
 * that stands still must not keep an account locked.
 */
function createLifeCheck(longestLifeMs: number) {
  interface Sighting {
    readonly blockHeight: number;
    readonly at: MonotonicTime;
  }
  const startedAt = monotonicNow();
  /** The first and the last height of each endpoint. */
  const shown = new Map<number, { readonly first: Sighting; readonly last: Sighting }>();

  return (answers: readonly ExpiryReport[]): boolean => {
    const now = monotonicNow();
    answers.forEach(({ blockHeight }, i) => {
      if (blockHeight === undefined) return;
      const sighting = { blockHeight, at: now };
      shown.set(i, { first: shown.get(i)?.first ?? sighting, last: sighting });
    });
    const blocksPerMs = [...shown.values()].map(({ first, last }) =>
      last.at > first.at
        ? (last.blockHeight - first.blockHeight) / msBetween(first.at, last.at)
        : 0,
    );
    const lowest = shown.size > 0 ? Math.max(0, Math.min(...blocksPerMs)) : 0;
    const lifeMs = lowest > 0 ? BLOCKHASH_BLOCKS / lowest : Infinity;
    return msBetween(startedAt, now) >= Math.min(longestLifeMs, lifeMs);
  };
}
