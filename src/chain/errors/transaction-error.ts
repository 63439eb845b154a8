import { isObject } from "../../contract/parse-json.ts";
import type { TransactionError } from "../rpc/rpc-results.ts";

/**
 * Whether the fee payer cannot pay: it was never funded, or cannot cover the fee or its rent-exempt
 * minimum.
 */
export function isFeePayerShort(err: TransactionError): boolean {
  if (err === "AccountNotFound" || err === "InsufficientFundsForFee") return true;
  const details = detailsOf(err, "InsufficientFundsForRent");
  return isObject(details) && details.account_index === 0;
}

/**
 * The index of the instruction that failed; undefined if the transaction failed for another reason.
 */
export function failedInstruction(err: TransactionError): number | undefined {
  return instructionError(err)?.[0];
}

/**
 * Whether the transaction exceeded a limit of the chain. The failed instruction need not be the
 * largest one.
 */
export function isTooLarge(err: TransactionError): boolean {
  return /(BudgetExceeded|TraceLengthExceeded|FailedToComplete)$/.test(
    String(instructionError(err)?.[1]),
  );
}

const instructionError = (err: TransactionError) =>
  detailsOf(err, "InstructionError") as readonly [number, unknown] | undefined;

const detailsOf = (err: TransactionError, name: string) =>
  typeof err === "string" ? undefined : err[name];
