import { ContractError } from "../../contract/contract-error.ts";
import type { TransactionError } from "../rpc/rpc-client.ts";

/** Errors that say the fee payer cannot pay, in the structure in which simulation and status give them. */
function isFeePayerShort(err: TransactionError): boolean {
  if (err === "AccountNotFound" || err === "InsufficientFundsForFee") return true;
  return rentShortAccount(err) === 0;
}

/** Whether the amount would leave a new address below the rent-exempt minimum. */
export function isTooLittleToArrive(err: TransactionError): boolean {
  const index = rentShortAccount(err);
  return index !== undefined && index !== 0;
}

function rentShortAccount(err: TransactionError): number | undefined {
  if (typeof err === "string") return undefined;
  const details = err.InsufficientFundsForRent as { account_index?: number } | undefined;
  return details?.account_index;
}

/** The contract's error for a transaction's: INSUFFICIENT_FUNDS or COLLECT_FAILED. `what` is for the log. */
export function toFailure(err: TransactionError, what: string): ContractError {
  const cause = new Error(`${what}: ${JSON.stringify(err)}`);
  return new ContractError(isFeePayerShort(err) ? "INSUFFICIENT_FUNDS" : "COLLECT_FAILED", { cause });
}
