import type { FailedTransactionMetadata } from "litesvm/dist/internal.js";
import type { TransactionError } from "../../chain/rpc/rpc-results.ts";

/**
 * A transaction's error in the form that a node returns. LiteSVM has the names of errors only in
 * Rust's debug format.
 */
export function toTransactionError(failure: FailedTransactionMetadata): TransactionError {
  const [, debug = ""] = /err: (.*?), meta: /.exec(String(failure)) ?? [];
  return parse(debug);
}

/**
 * Parses `AccountNotFound`, `InstructionError(0, Custom(1))`, `DuplicateInstruction(2)`, and
 * `InsufficientFundsForRent { account_index: 3 }`.
 */
function parse(debug: string): TransactionError {
  const [, name = "", digits, inner] = /^(\w+)(?:\D+(\d+))?(?:, (.*)\))?/.exec(debug) ?? [];
  if (digits === undefined) return name;
  const index = Number(digits);
  if (inner !== undefined) return { [name]: [index, parse(inner)] };
  return { [name]: debug.includes("account_index") ? { account_index: index } : index };
}
