import { ContractError, type ErrorDetails } from "./contract-error.ts";

/** SERVICE_BUSY: the service, or the caller's share of it, has no room for the request now. */
export const serviceBusy = (details?: ErrorDetails) => new ContractError("SERVICE_BUSY", details);
