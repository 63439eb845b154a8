import type { TransactionError } from "./rpc/transaction-error.ts";

/** Why a collect ended without a result. In the first group no transaction was sent. */
export type CollectFailure =
  /** The request's time was up before this collect began. */
  | { readonly kind: "not-started" }
  | { readonly kind: "too-many-in-flight" }
  /** Another replica held the lease until every caller's time was up. */
  | { readonly kind: "lease-not-acquired" }
  /** A transaction that another replica stored cannot be read; its lease is released. */
  | { readonly kind: "stored-transaction-unreadable" }
  | { readonly kind: "simulation-failed"; readonly err: TransactionError; readonly logs: readonly string[] }
  /** The account's last transaction failed on the chain a moment ago. */
  | { readonly kind: "backing-off"; readonly leftMs: number }
  | { readonly kind: "budget-spent" }
  /** A caller's time was up before the transaction was ready, so it is not sent. For the other callers. */
  | { readonly kind: "given-up-before-sending" }
  /** This caller's time was up before a transaction was ready; none will be sent. */
  | { readonly kind: "not-sent" }

  /** No transaction was sent, or it failed for this reason on the chain: `detail` says which. */
  | { readonly kind: "fee-payer-short"; readonly detail: string }

  /** The caller's time is up; the transaction may land or not. */
  | { readonly kind: "outcome-unknown"; readonly signature: string }
  /** The transaction did not land and never can. */
  | { readonly kind: "expired"; readonly signature: string }
  | { readonly kind: "failed-on-chain"; readonly signature: string; readonly err: TransactionError }
  /** The transaction landed; the amounts it moved cannot be read. */
  | { readonly kind: "landed-unreadable"; readonly signature: string };

/** A collect that ended without a result; `failure` says why. */
export class CollectError extends Error {
  override readonly name = "CollectError";
  readonly failure: CollectFailure;
  /** The code of the contract for it. */
  readonly code: "INSUFFICIENT_FUNDS" | "COLLECT_FAILED";

  constructor(failure: CollectFailure, cause?: unknown) {
    super(describe(failure), { cause });
    this.failure = failure;
    this.code = failure.kind === "fee-payer-short" ? "INSUFFICIENT_FUNDS" : "COLLECT_FAILED";
  }
}

/** The error's text, for the log. */
function describe(failure: CollectFailure): string {
  switch (failure.kind) {
    case "not-started":
      return "the request's time was up before the collect started";
    case "too-many-in-flight":
      return "too many collects are in flight";
    case "lease-not-acquired":
      return "another replica took longer to sign than a caller waits";
    case "stored-transaction-unreadable":
      return "the transaction that another replica stored cannot be read";
    case "simulation-failed":
      return `the simulation failed: ${failure.logs.join(" | ")}: ${JSON.stringify(failure.err)}`;
    case "backing-off":
      return `the account backs off for another ${Math.ceil(failure.leftMs)} ms`;
    case "budget-spent":
      return "the hour's budget for fees is used up";
    case "given-up-before-sending":
      return "the chain took longer than a caller waits to get as far as signing";
    case "not-sent":
      return "the caller's time was up before a transaction was ready to be sent";
    case "fee-payer-short":
      return `the fee payer cannot pay: ${failure.detail}`;
    case "outcome-unknown":
      return `the caller's time was up before the outcome of transaction ${failure.signature} was known`;
    case "expired":
      return `transaction ${failure.signature} did not land and never can`;
    case "failed-on-chain":
      return `transaction ${failure.signature} failed on the chain: ${JSON.stringify(failure.err)}`;
    case "landed-unreadable":
      return `transaction ${failure.signature} landed, but its amounts cannot be read`;
  }
}
