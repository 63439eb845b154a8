import { joinInFlight } from "../../store/memoize.ts";
import { monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { createLifeCheck } from "../slots/blockhash-life.ts";
import type { Rpc } from "./rpc-client.ts";
import { toFound, type SignatureStatus, type TransactionReport } from "./signature-status.ts";
import { decide, isSameOutcome, type CountedTransaction, type Landed } from "./decide-outcome.ts";

/** A signed transaction whose outcome is to be found. */
export interface TrackedTransaction {
  readonly signature: string;
  /** In base58, in order; undefined if the transaction's bytes cannot be decoded. */
  readonly accountKeys: readonly string[] | undefined;
  readonly blockhash: string | undefined;
  readonly lastValidBlockHeight: number;
}

export type TransactionOutcome =
  | Landed
  /** The transaction did not land and never can. `agreeing`: how many endpoints reported this. */
  | { readonly kind: "expired"; readonly agreeing: number }
  /** The blockhash has expired, but too few endpoints agree on whether the transaction landed. */
  | { readonly kind: "unknown" };

/** Tests pass shorter waits. The defaults are for production. */
export interface OutcomeWaits {
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

const ALONE_MS = 3_000;
const AGREE_MS = 20_000;

/** Asks the endpoints about signed transactions, until `decide` finds an outcome. */
export function createOutcomeChecks(
  needs: OutcomeWaits & {
    rpc: Pick<
      Rpc,
      | "endpointCount"
      | "getLandingReports"
      | "getExpiryReports"
      | "checkBlockhash"
      | "doubtBlockhash"
    >;
  },
) {
  const { rpc, aloneMs = ALONE_MS, agreeMs = AGREE_MS, longestLifeMs } = needs;
  const reading = new Map<string, Promise<readonly TransactionReport[]>>();

  /**
   * Reads a transaction at two endpoints. Concurrent reads of the same transaction are one.
   */
  function readReports({ signature, accountKeys }: TrackedTransaction, withStatus: boolean) {
    return joinInFlight(reading, signature, async () => {
      if (!accountKeys) return [];
      const isEnough = (reports: readonly TransactionReport[]) => isCertain(decide(reports));
      return rpc.getLandingReports(signature, accountKeys, { isEnough, withStatus });
    });
  }

  /**
   * Returns a function that reads a transaction once, and decides. An endpoint that alone returns
   * the transaction counts once the others have not done so in all reads of some seconds.
   */
  function createReader(transaction: TrackedTransaction, { hasLanded }: { hasLanded: boolean }) {
    let aloneSince: MonotonicTime | undefined;
    return async (withStatus = true) => {
      const reports = await readReports(transaction, withStatus);
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
   * landed. It receives what one of them reports, if any does.
   */
  function createLandingCheck(transaction: TrackedTransaction) {
    const read = createReader(transaction, { hasLanded: false });
    return async (status?: Pick<SignatureStatus, "err" | "slot">): Promise<Landed | undefined> => {
      const isEnough = status && rpc.endpointCount === 1;
      const decision = isEnough ? decide([toFound(status)]) : await read(!!status);
      return decision.kind === "landed" ? decision : undefined;
    };
  }

  /**
   * Returns a function that asks all endpoints for the outcome, and returns undefined while there
   * is none. The endpoint that returned the blockhash is doubted if that is why nothing lands.
   */
  function createOutcomeCheck(
    transaction: TrackedTransaction,
    checkLanding: ReturnType<typeof createLandingCheck>,
  ) {
    /**
     * By endpoint: whether the blockhash has expired, according to the last report. Ignores
     * `silent` reports.
     */
    const isPast: boolean[] = [];
    let pastSince: MonotonicTime | undefined;
    const isLifeOver = createLifeCheck(longestLifeMs);
    const { blockhash } = transaction;
    let isChecked = false;

    return async (): Promise<TransactionOutcome | undefined> => {
      const answers = await rpc.getExpiryReports(transaction);
      const reports = answers.map(({ report }) => report);
      const foundReport = reports.find((report) => report.kind === "found");
      const landing = foundReport && (await checkLanding(foundReport));
      if (landing) return landing;

      reports.forEach(({ kind }, i) => {
        if (kind !== "silent") isPast[i] = kind !== "valid";
      });
      pastSince = isPast.includes(true) ? (pastSince ?? monotonicNow()) : undefined;
      const decision = decide(reports, {
        isLifeOver: isLifeOver(answers.map(({ blockHeight }) => blockHeight)),
        isAgreementOver: pastSince !== undefined && msSince(pastSince) >= agreeMs,
      });
      if (decision.kind === "undecided") {
        if (!isChecked && blockhash !== undefined)
          void rpc.checkBlockhash(blockhash).catch(() => undefined);
        isChecked = true;
        return undefined;
      }
      if (decision.kind !== "landed" && blockhash !== undefined) rpc.doubtBlockhash(blockhash);
      return decision.kind === "disputed" ? { kind: "unknown" } : decision;
    };
  }

  return (transaction: TrackedTransaction) => {
    const checkLanding = createLandingCheck(transaction);
    return {
      checkLanding,
      findOutcome: createOutcomeCheck(transaction, checkLanding),
      /** Returns a function that reads the amounts of a landed transaction, if they are certain. */
      createAmountsReader(outcome: Landed) {
        const read = createReader(transaction, { hasLanded: true });
        return async (): Promise<CountedTransaction | undefined> => {
          const decision = await read();
          return hasAmounts(decision) && isPossible(outcome, decision)
            ? decision.transaction
            : undefined;
        };
      },
    };
  };
}

type WithAmounts = Landed & { readonly transaction: CountedTransaction };
const hasAmounts = (decision: ReturnType<typeof decide>): decision is WithAmounts =>
  decision.kind === "landed" && decision.transaction !== undefined;
const isCertain = (decision: ReturnType<typeof decide>): boolean =>
  hasAmounts(decision) && decision.transaction.isCertain;
/** Whether what a later read returns can be the landed transaction. */
const isPossible = (outcome: Landed, later: WithAmounts): boolean =>
  later.transaction.isCertain || outcome.err === undefined || isSameOutcome(outcome, later);
