import { ContractError } from "./contract-error.ts";

/** Which handles are accepted, and the words for it in messages. */
export interface HandleFormat {
  readonly pattern: RegExp;
  readonly expected: string;
}

/** The contract's format, or with `allowUnderscore` the network's own, which has the underscore too. */
export function handleFormat(allowUnderscore: boolean): HandleFormat {
  return allowUnderscore
    ? { pattern: /^[A-Za-z0-9_]{1,15}$/, expected: "1-15 alphanumeric characters or underscores" }
    : { pattern: /^[A-Za-z0-9]{1,15}$/, expected: "1-15 alphanumeric characters" };
}

/** INVALID_HANDLE, with the expected format and the received value. */
export function invalidHandle({ expected }: HandleFormat, received: string): ContractError {
  return new ContractError("INVALID_HANDLE", {
    message: `The handle must be ${expected}, without the @. Received ${received}.`,
  });
}
