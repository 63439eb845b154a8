import { ContractError } from "../../contract/contract-error.ts";
import { refusalDetails } from "../../fairness/refusal-details.ts";
import { toError } from "../../observability/thrown.ts";
import { CollectError } from "./collect-error.ts";
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
 * Converts a failed collect's error to INSUFFICIENT_FUNDS or COLLECT_FAILED; returns a
 * ContractError unchanged. Sets `operatorHint` if the operator may have to act. A `cause` without a
 * hint marks a bug.
 */
export function toCollectContractError(error: unknown): ContractError {
  if (error instanceof ContractError) return error;
  if (error instanceof CollectError) return new ContractError(error.code, error.details());
  if (error instanceof NoRoomError) return new ContractError("COLLECT_FAILED", noRoom(error));
  if (error instanceof RpcError) return toOutage("COLLECT_FAILED", error);
  return new ContractError("COLLECT_FAILED", { cause: error });
}

const noRoom = ({ shortage }: NoRoomError) => refusalDetails(shortage, "calls to the chain");

function toOutage(code: "LOOKUP_FAILED" | "COLLECT_FAILED", cause: RpcError): ContractError {
  const operatorHint =
    "the chain does not answer as expected: check the endpoints in SOLANA_RPC_URL";
  return new ContractError(code, { cause, operatorHint });
}
