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

/** A transaction failed that is too large: the failed instruction need not be the largest one. */
const IS_TOO_LARGE = /(BudgetExceeded|TraceLengthExceeded|FailedToComplete)$/;

/**
 * The index of the instruction that made a transaction fail; undefined if the transaction failed
 * for another reason, or exceeded a limit of the chain.
 */
export function failedInstruction(err: TransactionError): number | undefined {
  const [index, reason] = (detailsOf(err, "InstructionError") ?? []) as [number?, unknown?];
  return IS_TOO_LARGE.test(String(reason)) ? undefined : index;
}

const detailsOf = (err: TransactionError, name: string) =>
  typeof err === "string" ? undefined : err[name];
