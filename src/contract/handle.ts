import { ContractError } from "./contract-error.ts";

/** The format of accepted handles, and its description for messages. */
export interface HandleFormat {
  readonly pattern: RegExp;
  readonly expected: string;
}

/**
 * The contract's format; with `allowUnderscore` the social network's, which also allows
 * underscores.
 */
export function handleFormat(allowUnderscore: boolean): HandleFormat {
  return allowUnderscore
    ? { pattern: /^[A-Za-z0-9_]{1,15}$/, expected: "1-15 alphanumeric characters or underscores" }
    : { pattern: /^[A-Za-z0-9]{1,15}$/, expected: "1-15 alphanumeric characters" };
}

const NO_UNDERSCORES =
  "This service does not take handles with an underscore: use `walletById` in GraphQL.";

export function invalidHandle(
  { expected: expectedForm }: HandleFormat,
  receivedText: string,
): ContractError {
  const message = `The handle must be ${expectedForm}, without the @. Received ${receivedText}.`;
  const isUnderscore = receivedText.includes("_") && !expectedForm.includes("underscore");
  return new ContractError("INVALID_HANDLE", {
    message: isUnderscore ? `${message} ${NO_UNDERSCORES}` : message,
  });
}
