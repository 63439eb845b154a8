/** A transaction's error in the form of JSON-RPC: a name, or an object with one name and its details. */
export type TransactionError = string | Readonly<Record<string, unknown>>;

/** Whether the fee payer cannot pay: it was never funded, or cannot cover the fee or its rent-exempt minimum. */
export function isFeePayerShort(err: TransactionError): boolean {
  if (err === "AccountNotFound" || err === "InsufficientFundsForFee") return true;
  return accountBelowRent(err) === 0;
}

/** Whether an account other than the fee payer would end below the rent-exempt minimum. */
export function isReceiverBelowRent(err: TransactionError): boolean {
  const index = accountBelowRent(err);
  return index !== undefined && index !== 0;
}

/** The index of the instruction that failed; undefined if the transaction failed for another reason. */
export function failedInstruction(err: TransactionError): number | undefined {
  if (typeof err === "string") return undefined;
  const details = err.InstructionError as readonly [number, ...unknown[]] | undefined;
  return details?.[0];
}

/** Whether the transaction used up its compute units: any of its instructions may have used too many. */
export function isOutOfUnits(err: TransactionError): boolean {
  if (typeof err === "string") return false;
  const details = err.InstructionError as readonly [number, unknown] | undefined;
  return details?.[1] === "ComputationalBudgetExceeded" || details?.[1] === "ProgramFailedToComplete";
}

/** The index, in the transaction, of an account that would end below the rent-exempt minimum; the fee payer has 0. */
export function accountBelowRent(err: TransactionError): number | undefined {
  if (typeof err === "string") return undefined;
  const details = err.InsufficientFundsForRent as { account_index?: number } | undefined;
  return details?.account_index;
}
