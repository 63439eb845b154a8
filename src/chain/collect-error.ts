import type { Shortage } from "../upstream/budget/budget.ts";
import type { TransactionError } from "./rpc/transaction-error.ts";

/**
 * Why a caller receives no result. For the kinds of the first group, the collect never started or has ended,
 * and no transaction that this replica sent can still land.
 */
export type CollectFailure =
  /** The request timed out before this collect started. */
  | { readonly kind: "not-started" }
  | { readonly kind: "too-many-in-flight" }
  /** Another replica was still preparing its transaction at this collect's deadline. */
  | { readonly kind: "lease-not-acquired" }
  /** The transaction that another replica stored is unreadable; the lock is released. */
  | { readonly kind: "stored-transaction-unreadable" }
  | {
      readonly kind: "simulation-failed";
      readonly err: TransactionError;
      /** The log line of the last program that failed. */
      readonly programError: string | undefined;
    }
  /** The account's last transaction failed on the chain. */
  | { readonly kind: "backing-off"; readonly leftMs: number }
  /** Only coins could be collected that back off: their sweeps failed on the chain. */
  | { readonly kind: "coins-backing-off"; readonly leftMs: number }
  /**
   * The caller's block has used its part of the hour's fees, or the service its budget. Small collects have limits of
   * their own. Without `retryAfterSeconds`, the budget is too small for this collect.
   */
  | ({ readonly kind: "budget-spent"; readonly isSmall: boolean } & Shortage)
  /** No transaction was signed before the collect's deadline. */
  | { readonly kind: "timed-out" }

  /** Either no transaction was sent, or it failed on the chain for this reason: see `detail`. */
  | { readonly kind: "fee-payer-short"; readonly detail: string }

  /** The caller timed out, the collect continues. With a signature, its transaction is sent and may still land. */
  | { readonly kind: "still-running"; readonly signature: string | undefined }

  /** The transaction can no longer land; it is not known whether it did. */
  | { readonly kind: "unknown"; readonly signature: string }
  /** The transaction did not land and never can. */
  | { readonly kind: "expired"; readonly signature: string }
  | {
      readonly kind: "failed-on-chain";
      readonly signature: string;
      readonly err: TransactionError;
      /** The mints of the coins that back off; undefined for a transaction without coins. */
      readonly mints?: readonly string[] | undefined;
    }
  /** The transaction landed; the amounts it moved cannot be read. */
  | { readonly kind: "landed-unreadable"; readonly signature: string };

/** A collect that ended without a result; `failure` says why. */
export class CollectError extends Error {
  override readonly name = "CollectError";
  readonly failure: CollectFailure;
  /** The contract's error code. */
  readonly code: "INSUFFICIENT_FUNDS" | "COLLECT_FAILED";

  constructor(failure: CollectFailure, cause?: unknown) {
    super(describe(failure), { cause });
    this.failure = failure;
    this.code = failure.kind === "fee-payer-short" ? "INSUFFICIENT_FUNDS" : "COLLECT_FAILED";
  }
}

/** The text for the log. */
function describe(failure: CollectFailure): string {
  switch (failure.kind) {
    case "not-started":
      return "the request timed out before the collect started";
    case "too-many-in-flight":
      return "too many collects are in flight";
    case "lease-not-acquired":
      return "another replica held the account's lock until the collect's deadline";
    case "stored-transaction-unreadable":
      return "the transaction that another replica stored cannot be read";
    case "simulation-failed":
      return ["the simulation failed", failure.programError, JSON.stringify(failure.err)]
        .filter((text) => text !== undefined)
        .join(": ");
    case "backing-off":
      return `the account backs off for ${Math.ceil(failure.leftMs)} ms more`;
    case "coins-backing-off":
      return `the coins back off for ${Math.ceil(failure.leftMs)} ms more`;
    case "budget-spent":
      return `the hour's budget for fees is used up: ${failure.scope}`;
    case "timed-out":
      return "the collect's deadline passed before a transaction was signed";
    case "fee-payer-short":
      return `the fee payer cannot pay: ${failure.detail}`;
    case "still-running":
      return failure.signature === undefined
        ? "the caller timed out while no transaction was in flight"
        : `the caller timed out before the outcome of transaction ${failure.signature} was known`;
    case "unknown":
      return `it is not known whether transaction ${failure.signature} landed; if it did not, it never will`;
    case "expired":
      return `transaction ${failure.signature} did not land and never can`;
    case "failed-on-chain":
      return `transaction ${failure.signature} failed on the chain: ${JSON.stringify(failure.err)}`;
    case "landed-unreadable":
      return `transaction ${failure.signature} landed, but its amounts cannot be read`;
  }
}
