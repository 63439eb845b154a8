import { ContractError, type ErrorDetails } from "./contract-error.ts";

/** SERVICE_BUSY, for what the service, or the caller's share of it, cannot take now. Default: the table's message. */
export function serviceBusy(message?: string, details?: Omit<ErrorDetails, "message">): ContractError {
  return new ContractError("SERVICE_BUSY", { ...details, ...(message !== undefined && { message }) });
}
