import type { TransactionReport } from "./signature-status.ts";
import type { TransactionError } from "./transaction-error.ts";
import type { LandedTransaction } from "./read-transactions.ts";

/** A landed transaction whose amounts count. */
export interface CountedTransaction extends LandedTransaction {
  /** Whether two endpoints, or the only one, return it. Otherwise all others are silent. */
  readonly isCertain: boolean;
}

/** The transaction is in a block. */
export interface Landed {
  readonly kind: "landed";
  /** Undefined if the endpoints do not agree on the error. */
  readonly err: TransactionError | null | undefined;
  /** 0 if no slot is credible, or the endpoints do not agree on it. */
  readonly slot: number;
  /** Undefined if the amounts are not certain yet. */
  readonly transaction?: CountedTransaction | undefined;
}

/** What the endpoints' reports say about a transaction. */
export type Decision =
  | Landed
  /** The transaction did not land and never can. `agreeing`: how many endpoints prove this. */
  | { readonly kind: "expired"; readonly agreeing: number }
  /** The endpoints have had enough time, and do not agree. */
  | { readonly kind: "disputed" }
  | { readonly kind: "undecided" };

/** Which times are over; none by default. */
interface Passed {
  /**
   * The time that other endpoints have to return a transaction that only one returns. Endpoints
   * that do not know it have more time, until it has certainly landed.
   */
  readonly isAloneOver?: boolean | undefined;
  readonly hasLanded?: boolean | undefined;
  /** The longest life of a blockhash. */
  readonly isLifeOver?: boolean | undefined;
  /** The time to agree, since an endpoint first reported that the blockhash has expired. */
  readonly isAgreementOver?: boolean | undefined;
}

/**
 * How many endpoints must agree that a transaction landed or expired, if that many are configured.
 */
const MIN_AGREEING = 2;

/**
 * Decides what reports of different endpoints mean. One of several endpoints may lie, so it decides
 * nothing alone, but an endpoint that is silent, or goes on failing, has no vote. "Two" means one
 * if one endpoint is configured. The first row that applies decides:
 *
 * | Reports                                                     | Decision                      |
 * | ----------------------------------------------------------- | ----------------------------- |
 * | two return the same transaction                             | landed, with error and amounts |
 * | one returns it, each other is silent, or, once the time is  |                               |
 * | over, fails or only has the same final status               | landed, with error and amounts |
 * | two say that it landed, with one error and slot             | landed, with error            |
 * | two say that it landed, and differ                          | landed                        |
 * | two prove that it expired, at most one says that it landed, |                               |
 * | and none that it may still land, or the life is over        | expired                       |
 * | any other reports, life and time to agree are over          | disputed                      |
 * | any other reports                                           | undecided                     |
 */
export function decide(reports: readonly TransactionReport[], deadlines: Passed = {}): Decision {
  const { isAloneOver, hasLanded, isLifeOver, isAgreementOver } = deadlines;
  const quorum = Math.min(MIN_AGREEING, Math.max(1, reports.length));
  const count = (kind: TransactionReport["kind"]) =>
    reports.filter((report) => report.kind === kind).length;

  const read = reports.flatMap((report) => (report.kind === "read" ? report.transaction : []));
  const same = largestGroup(read, contentOf);
  const [transaction] = same;
  if (transaction && same.length >= quorum)
    return toLanded({ ...transaction, blockTime: blockTimeOf(same), isCertain: true });

  const landings = reports.flatMap(landingOf);
  const agreeing = largestGroup(landings, outcomeOf);
  /** Whether the endpoint has returned the transaction, or is not expected to. */
  const isDone = ({ kind }: TransactionReport) => {
    switch (kind) {
      case "read":
      case "silent":
        return true;
      case "failing":
      case "found":
        return isAloneOver;
      case "unknown":
        return isAloneOver && hasLanded;
      case "valid":
      case "past":
      case "absent":
        return false;
    }
  };
  const isOnlyOne =
    read.length === 1 && agreeing.length === landings.length && reports.every(isDone);
  if (transaction && isOnlyOne) return toLanded({ ...transaction, isCertain: false });

  const [landing] = agreeing;
  if (landing && agreeing.length >= quorum)
    return { kind: "landed", err: landing.err, slot: landing.slot };
  if (landings.length >= quorum) return { kind: "landed", err: undefined, slot: 0 };

  const absent = count("absent");
  const mayLand = count("valid") > 0 && !isLifeOver;
  if (absent >= quorum && !mayLand) return { kind: "expired", agreeing: absent };
  return { kind: isLifeOver && isAgreementOver ? "disputed" : "undecided" };
}

/** The outcome that a report contains. */
function landingOf(report: TransactionReport): Outcome | [] {
  switch (report.kind) {
    case "read":
      return report.transaction;
    case "found":
      return report;
    case "silent":
    case "failing":
    case "unknown":
    case "valid":
    case "past":
    case "absent":
      return [];
  }
}

function toLanded(transaction: CountedTransaction): Landed {
  return { kind: "landed", err: transaction.err, slot: transaction.slot, transaction };
}

/** Whether two outcomes of a landed transaction are the same. */
export const isSameOutcome = (a: Outcome, b: Outcome): boolean => outcomeOf(a) === outcomeOf(b);

type Outcome = Pick<Landed, "err" | "slot">;
const outcomeOf = ({ err, slot }: Outcome): string => JSON.stringify([err, slot]);
/** All that a collect uses, but the time of the block, which some nodes leave out. */
const contentOf = ({ err, slot, fee, balances }: LandedTransaction): string =>
  JSON.stringify([
    ...[err, slot, String(fee)],
    [...balances].map(([address, { before, after }]) => [address, String(before), String(after)]),
  ]);

/** Returns the time that all name which know it. */
function blockTimeOf(transactions: readonly LandedTransaction[]): number | undefined {
  const times = new Set(transactions.flatMap(({ blockTime }) => blockTime ?? []));
  return times.size === 1 ? [...times][0] : undefined;
}

/** Returns the largest group of items with the same text. */
function largestGroup<T>(items: readonly T[], toText: (item: T) => string): readonly T[] {
  const groups = [...Map.groupBy(items, toText).values()];
  return groups.reduce<readonly T[]>((a, b) => (b.length > a.length ? b : a), []);
}
