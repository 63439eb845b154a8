import { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";

/**
 * Converts an error to the one that callers see: a ContractError stays as it is, any other error becomes
 * LOOKUP_FAILED. Logs the cause: an upstream's outage as a warning that says what the operator should do, a
 * bug as an error. Does not log a cause in `logged` again: fields of one request often fail together.
 */
export function toCallerError(error: unknown, log: Logger, logged: Set<unknown>): ContractError {
  const shown = error instanceof ContractError ? error : new ContractError("LOOKUP_FAILED", { cause: error });
  const { cause, code, operatorHint } = shown;
  if (cause === undefined || logged.has(cause)) return shown;
  logged.add(cause);
  if (operatorHint !== undefined) log.warn({ err: cause, code }, operatorHint);
  else if (isAbort(cause)) log.debug("the caller disconnected");
  else log.error({ err: cause, code }, "a request failed unexpectedly");
  return shown;
}

/** Whether a read was dropped because the caller disconnected. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
