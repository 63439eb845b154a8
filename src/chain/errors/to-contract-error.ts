import { ContractError, type ErrorDetails } from "../../contract/contract-error.ts";
import { refusalDetails } from "../../fairness/refusal-details.ts";
import { toError } from "../../observability/thrown.ts";
import { CollectError, RETRY_SECONDS } from "./collect-error.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import { NoRoomError } from "./no-room-error.ts";

/**
 * Converts an RpcError to LOOKUP_FAILED or SERVICE_BUSY. Returns any other error unchanged: it may
 * be a caller's abort reason.
 */
export function toLookupContractError(error: unknown): Error {
  if (error instanceof NoRoomError) return new ContractError("SERVICE_BUSY", noRoom(error));
  return error instanceof RpcError ? toOutage("LOOKUP_FAILED", error) : toError(error);
}

/**
 * Converts a failed collect's error to INSUFFICIENT_FUNDS or COLLECT_FAILED. A ContractError that
 * does not say what moved is of a bad input. Sets `operatorHint` if the operator may
 * have to act. A `cause` without a hint marks a bug.
 */
export function toCollectContractError(error: unknown): ContractError {
  if (error instanceof ContractError)
    return error.extensions?.moved ? error : error.with(NOT_MOVED);
  if (error instanceof CollectError) return new ContractError(error.code, error.details());
  // Once a transaction is sent, neither of these ends a collect.
  if (error instanceof NoRoomError)
    return new ContractError("COLLECT_FAILED", noRoom(error)).with(NOT_MOVED);
  if (error instanceof RpcError)
    return toOutage("COLLECT_FAILED", error, {
      retryAfterSeconds: RETRY_SECONDS,
      extensions: NOT_MOVED,
    });
  return new ContractError("COLLECT_FAILED", { cause: error, extensions: { moved: "unknown" } });
}

const NOT_MOVED = { moved: "no" } as const;

const noRoom = ({ shortage }: NoRoomError) => refusalDetails(shortage, "calls to the chain");

function toOutage(
  code: "LOOKUP_FAILED" | "COLLECT_FAILED",
  cause: RpcError,
  details?: ErrorDetails,
): ContractError {
  const operatorHint =
    "the chain does not answer as expected: check the endpoints in SOLANA_RPC_URL";
  return new ContractError(code, { ...details, cause, operatorHint });
}
