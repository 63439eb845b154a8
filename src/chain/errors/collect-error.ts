import {
  retryIn,
  toRetryAfterSeconds,
  type ErrorDetails,
  type Moved,
} from "../../contract/contract-error.ts";
import type { Shortage } from "../../fairness/budget.ts";
import { refusalDetails } from "../../fairness/refusal-details.ts";
import type { TransactionError } from "../rpc/rpc-results.ts";

/**
 * How one kind of failure appears in the log, to the caller, to the operator and in the metrics.
 */
interface Failure<Details> {
  /** What the collect has moved to the account. */
  readonly moved: Moved;
  /** Whole seconds, if a retry helps and `answer` does not say when. */
  readonly retryAfterSeconds?: number;
  /**
   * For the caller and the log: replaces the error code's default message, and says when to retry.
   */
  readonly answer?: (details: Details) => ErrorDetails;
  /** For the log, if callers get the error code's default message. */
  readonly text?: (details: Details) => string;
  /** What the operator can do, if anything. */
  readonly hint?: string;
  /** `COLLECT_FAILED` if absent. */
  readonly code?: "INSUFFICIENT_FUNDS" | "COLLECT_FAILED";
}

/** Infers the type of a row's details from the row's functions. */
const failure = <Details = object>(row: Failure<Details>): Failure<Details> => row;

interface Signed {
  readonly signature: string;
}

/** What the default message of COLLECT_FAILED says: in a minute. */
export const RETRY_SECONDS = 60;
const AT_ONCE = 1;

const say = (message: string) => () => ({ message });

/**
 * The reasons why a caller receives no result. In the first group, up to `timed-out`, the collect
 * never started or has ended, and no transaction that this replica sent can still land.
 */
export const COLLECT_FAILURES = {
  "not-started": failure({
    moved: "no",
    retryAfterSeconds: AT_ONCE,
    answer: say("The request timed out before this collect started. Request it again."),
  }),
  /**
   * Another replica was preparing a transaction for the account or for a shared coin, and did not
   * sign in time.
   */
  "lease-not-acquired": failure({
    moved: "no",
    retryAfterSeconds: RETRY_SECONDS,
    text: () => "another replica held the lock of the account, or of a coin, for too long",
    hint: "another replica did not sign in time: check that all replicas run and that their chain endpoints answer",
  }),
  /** The transaction that another replica stored is unreadable; the lock is released. */
  "stored-transaction-unreadable": failure({
    moved: "unknown",
    retryAfterSeconds: RETRY_SECONDS,
    text: () => "the transaction that another replica stored cannot be read",
    hint: "a signed transaction in Redis cannot be read and was dropped: check that only replicas of this service write to REDIS_URL",
  }),
  "simulation-failed": failure<{
    readonly err: TransactionError;
    /**
     * The runtime's last log line about a failed program; undefined if no program failed or the
     * node omits logs.
     */
    readonly programError: string | undefined;
  }>({
    moved: "no",
    retryAfterSeconds: RETRY_SECONDS,
    text: ({ err, programError }) =>
      `the simulation failed: ${programError === undefined ? "" : `${programError}: `}${JSON.stringify(err)}`,
    hint: "the launch platform's programs refuse the collect: if they refuse every collect, they have changed, so install a new version",
  }),
  /** Without what failed a short time ago, too little can be collected. */
  "backing-off": failure<{ readonly leftMs: number }>({
    moved: "no",
    answer: ({ leftMs }) =>
      retryIn(
        toRetryAfterSeconds(leftMs),
        "The last transaction with these fees failed on the chain, moved nothing, or is not known to have landed, so no new one was sent.",
      ),
  }),
  /**
   * The caller's address block has used its share of the hourly fee budget, or the service has used
   * the whole budget. Small collects have separate limits. Without `retryAfterSeconds`, the budget
   * can never cover this collect.
   */
  "budget-spent": failure<{ readonly isSmall: boolean } & Shortage>({
    moved: "no",
    answer: (shortage) =>
      refusalDetails(shortage, shortage.isSmall ? "fee budget for small collects" : "fee budget"),
  }),
  /** Two of the request's transactions moved nothing, and fees wait. */
  "others-first": failure({
    moved: "no",
    retryAfterSeconds: AT_ONCE,
    answer: say(
      "Others collected first, each time that this collect tried. Fees may still wait: try again.",
    ),
    hint: "others collect an account again and again: if nobody else does, check the balances that the endpoints in SOLANA_RPC_URL return",
  }),
  /** No transaction was signed before the collect's deadline. */
  "timed-out": failure({
    moved: "no",
    retryAfterSeconds: RETRY_SECONDS,
    answer: say(
      "The chain did not answer in time. No new transaction was sent. Try again in a minute.",
    ),
    hint: "the chain is too slow for COLLECT_TIMEOUT_MS: check the endpoints in SOLANA_RPC_URL",
  }),

  /**
   * The fee payer's balance is too low: nothing was sent, or the transaction failed on the chain.
   * See `detail`.
   */
  "fee-payer-short": failure<{ readonly detail: string; readonly signature?: string }>({
    moved: "no",
    text: ({ detail }) => `the fee payer cannot pay: ${detail}`,
    hint: "the fee payer has too little SOL: send it some; /readyz and npm run doctor show its address and balance",
    code: "INSUFFICIENT_FUNDS",
  }),

  /**
   * The caller timed out, but the collect continues. With a signature, a transaction was sent and
   * may still land.
   */
  "still-running": failure<{ readonly signature: string | undefined }>({
    moved: "unknown",
    retryAfterSeconds: AT_ONCE,
    answer: ({ signature }) => ({
      message:
        signature === undefined
          ? "The collect is still running; it has no transaction in flight yet. Collect again to wait for its result."
          : `The collect is still running; it is not known yet whether transaction ${signature} lands. Look it up by its signature, or collect again to wait for it.`,
    }),
    hint: "a collect takes longer than COLLECT_TIMEOUT_MS, and continues: if this repeats, check the endpoints in SOLANA_RPC_URL",
  }),

  /**
   * Whether the transaction landed is unknown: no endpoint says so while its blockhash lives, or two
   * contradict each other.
   */
  unknown: failure<Signed>({
    moved: "unknown",
    retryAfterSeconds: RETRY_SECONDS,
    answer: ({ signature }) => ({
      message: `It is not known whether transaction ${signature} landed. Look it up by its signature. Collecting again never moves the same fees twice.`,
    }),
    hint: "no endpoint in SOLANA_RPC_URL says what became of a collect's transaction: look it up by its signature, and check that they answer",
  }),
  /** The transaction did not land and never can. */
  expired: failure<Signed>({
    moved: "no",
    retryAfterSeconds: AT_ONCE,
    answer: ({ signature }) => ({
      message: `Transaction ${signature} did not land and never can. Nothing was moved. Try again.`,
    }),
    hint: "a collect's transaction did not land: if this repeats, raise MAX_PRIORITY_FEE_LAMPORTS",
  }),
  "failed-on-chain": failure<Signed & { readonly err: TransactionError }>({
    moved: "no",
    retryAfterSeconds: RETRY_SECONDS,
    text: ({ signature, err }) =>
      `transaction ${signature} failed on the chain: ${JSON.stringify(err)}`,
    hint: "a transaction failed on the chain although its simulation succeeded, and cost its fee: look it up by its signature",
  }),
  /**
   * The transaction landed without effect while the vault holds the fees: the launch platform pays
   * no receiver that would stay below its rent-exempt minimum. It was emptied after the simulation.
   */
  "nothing-received": failure<Signed>({
    moved: "no",
    retryAfterSeconds: RETRY_SECONDS,
    answer: ({ signature }) => ({
      message: `Transaction ${signature} landed, but moved nothing: the account's address, or another account that shares the coin's fees, was emptied just before, and could not receive its part. The fees still wait. Try again later.`,
    }),
    hint: "a receiver of fees was emptied between a collect's simulation and its landing, which costs a fee: the account, or the coin, backs off",
  }),
  /** The transaction landed, but the amounts that it moved cannot be read. */
  "landed-unreadable": failure<Signed>({
    moved: "yes",
    retryAfterSeconds: RETRY_SECONDS,
    answer: ({ signature }) => ({
      message: `Transaction ${signature} landed, but its amounts are not certain at the moment. Look it up by its signature.`,
    }),
    hint: "no endpoint in SOLANA_RPC_URL returns what a landed transaction moved: look it up by its signature, and check that they answer",
  }),
};

type Rows = typeof COLLECT_FAILURES;
type Kind = keyof Rows;
type DetailsOf<K extends Kind> = Rows[K] extends Failure<infer Details> ? Details : never;

export type CollectFailure = { [K in Kind]: { readonly kind: K } & DetailsOf<K> }[Kind];

/** The cast is safe: each kind's row takes that kind's details. */
const rowOf = ({ kind }: CollectFailure) => COLLECT_FAILURES[kind] as Failure<CollectFailure>;

/** The error of a caller who receives no result of a collect; `failure` says why. */
export class CollectError extends Error {
  override readonly name = "CollectError";
  readonly failure: CollectFailure;
  /** The contract's error code. */
  readonly code: "INSUFFICIENT_FUNDS" | "COLLECT_FAILED";

  constructor(failure: CollectFailure, cause?: unknown) {
    const row = rowOf(failure);
    super(row.text?.(failure) ?? row.answer?.(failure).message, { cause });
    this.failure = failure;
    this.code = row.code ?? "COLLECT_FAILED";
  }

  /**
   * Returns what replaces the error code's defaults. With a hint for the operator, `cause` is this
   * error.
   */
  details(): ErrorDetails {
    const { moved, retryAfterSeconds, answer, hint } = rowOf(this.failure);
    const txSignature = signatureOf(this.failure);
    const said = answer?.(this.failure);
    return {
      retryAfterSeconds,
      ...said,
      extensions: { moved, ...(txSignature && { txSignature }), ...said?.extensions },
      ...(hint !== undefined && { cause: this, operatorHint: hint }),
    };
  }
}

/** Why a collect failed; undefined for any other error. */
export const failureOf = (error: unknown): Kind | undefined =>
  error instanceof CollectError ? error.failure.kind : undefined;

const signatureOf = (failure: CollectFailure): string | undefined =>
  "signature" in failure ? failure.signature : undefined;

/** Whether an error names a transaction that may have moved fees. */
export function mayHaveMoved(error: unknown): error is CollectError {
  if (!(error instanceof CollectError)) return false;
  return signatureOf(error.failure) !== undefined && rowOf(error.failure).moved !== "no";
}
