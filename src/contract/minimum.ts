import { wrongValue, type ContractError } from "./contract-error.ts";

const DECIMALS = 9;
/** More whole SOL than exist have ten digits. */
const MINIMUM_PATTERN = /^([0-9]{1,10})(?:\.([0-9]{1,9}))?$/;

export function invalidMinimum(value: unknown): ContractError {
  const what = `\`minimum\` must be a string of SOL with at most ${DECIMALS} digits after the point, such as "0.5"`;
  return wrongValue("INVALID_MINIMUM", what, value);
}

/** Refuses a member such as `minimumSol`: it would be ignored. */
export function unknownMinimum(name: string): ContractError {
  return wrongValue("INVALID_MINIMUM", 'The minimum is named by "minimum"', name);
}

/** Parses the least SOL that a collect is to move. Returns lamports. Throws INVALID_MINIMUM. */
export function toMinimum(text: string): bigint {
  const [, sol, decimals = ""] = MINIMUM_PATTERN.exec(text) ?? [];
  if (sol === undefined) throw invalidMinimum(text);
  return BigInt(sol + decimals.padEnd(DECIMALS, "0"));
}
