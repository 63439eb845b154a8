import { ContractError, toRetryAfterSeconds, type ErrorDetails } from "../contract/contract-error.ts";
import type { Shortage } from "../upstream/budget/budget.ts";
import { CollectError } from "./collect-error.ts";
import { RpcError } from "./rpc/rpc-error.ts";

/**
 * The caller's error for a failed read: LOOKUP_FAILED for an RpcError. Any other error is returned as it is, because
 * it may be the abort reason of a disconnected caller.
 */
export function toLookupContractError(error: unknown): Error {
  return error instanceof RpcError ? toOutage("LOOKUP_FAILED", error) : (error as Error);
}

/**
 * The caller's error for a failed collect: INSUFFICIENT_FUNDS or COLLECT_FAILED. It has an `operatorHint` where the
 * operator may have to act; a cause without a hint marks a bug.
 */
export function toCollectContractError(error: unknown): ContractError {
  if (error instanceof ContractError) return error;
  if (error instanceof CollectError) return new ContractError(error.code, detailsOf(error));
  if (error instanceof RpcError) return toOutage("COLLECT_FAILED", error);
  return new ContractError("COLLECT_FAILED", { cause: error });
}

function toOutage(code: "LOOKUP_FAILED" | "COLLECT_FAILED", cause: RpcError): ContractError {
  const operatorHint = "the chain does not answer as expected: check the endpoints in SOLANA_RPC_URL";
  return new ContractError(code, { cause, operatorHint });
}

/** The refusal of a collect, or of a page of a history, by the service's `budget`. */
export function toRefusal(
  { scope, retryAfterSeconds }: Shortage,
  budget: string,
  refused: "collect" | "page",
): ErrorDetails & { message: string } {
  if (retryAfterSeconds === undefined)
    return { message: `The service's ${budget} does not allow this ${refused}.`, extensions: { scope } };
  const used = scope === "CALLER" ? "You have used your share of the service's" : "The service has used its";
  return {
    message: `${used} ${budget} for now. Try again in ${retryAfterSeconds} seconds.`,
    retryAfterSeconds,
    extensions: { scope },
  };
}

/** A message for the caller where the code's default is too vague, or a hint where the operator may have to act. */
function detailsOf(error: CollectError): ErrorDetails {
  const { failure } = error;
  const forOperator = (operatorHint: string): ErrorDetails => ({ cause: error, operatorHint });
  switch (failure.kind) {
    case "not-started":
      return {
        message: "The request timed out before this collect started. Request it again.",
      };
    case "too-many-in-flight":
      return { message: "Too many collects are in flight. Try again in a minute." };
    case "lease-not-acquired":
      return forOperator(
        "another replica did not sign in time: check that all replicas run and that their chain endpoints answer",
      );
    case "stored-transaction-unreadable":
      return forOperator(
        "a signed transaction in Redis cannot be read and was dropped: check that only replicas of this service write to REDIS_URL",
      );
    case "simulation-failed":
      return forOperator(
        "the launch platform's programs refuse the collect: check LAUNCHPAD_PROGRAM_ID and LAUNCHPAD_AMM_PROGRAM_ID",
      );
    case "backing-off":
      return {
        message: `The account's last transaction failed on the chain although its simulation succeeded, so no new one was sent. Try again in ${toRetryAfterSeconds(failure.leftMs)} seconds.`,
      };
    case "coins-backing-off": {
      const retryAfterSeconds = toRetryAfterSeconds(failure.leftMs);
      return {
        message: `Only coins could be collected whose last sweep failed on the chain, so no transaction was sent. Try again in ${retryAfterSeconds} seconds.`,
        retryAfterSeconds,
      };
    }
    case "budget-spent":
      return toRefusal(failure, failure.isSmall ? "fee budget for small collects" : "fee budget", "collect");
    case "timed-out":
      return {
        message: "The chain did not answer in time. No new transaction was sent. Try again in a minute.",
        ...forOperator("the chain is too slow for COLLECT_TIMEOUT_MS: check the endpoints in SOLANA_RPC_URL"),
      };
    case "fee-payer-short":
      // A warning already says so, once instead of once per caller.
      return {};
    case "still-running":
      return {
        message:
          failure.signature === undefined
            ? "The collect is still running; it has no transaction in flight yet. Collect again to wait for its result."
            : `The collect is still running; it is not known yet whether transaction ${failure.signature} lands. Look it up by its signature, or collect again to wait for it.`,
      };
    case "unknown":
      return {
        message: `It is not known whether transaction ${failure.signature} landed; if it did not, it never will. Look it up by its signature. Collecting again never moves the same fees twice.`,
        ...forOperator(
          "the endpoints in SOLANA_RPC_URL do not agree on whether a transaction landed: look it up by its signature, and replace the endpoint that is wrong",
        ),
      };
    case "expired":
      return {
        message: `Transaction ${failure.signature} did not land and never can. Nothing was moved. Try again.`,
      };
    case "failed-on-chain":
      return forOperator(
        "a transaction failed on the chain although its simulation succeeded, and cost its fee: look it up by its signature",
      );
    case "landed-unreadable":
      return {
        message: `Transaction ${failure.signature} landed, but its amounts cannot be read at the moment. Look it up by its signature.`,
      };
  }
}
