import { ContractError, type ErrorDetails } from "./contract-error.ts";

/** SERVICE_BUSY, for what the service, or the caller's share of it, cannot take now. */
export const serviceBusy = (details?: ErrorDetails) => new ContractError("SERVICE_BUSY", details);
