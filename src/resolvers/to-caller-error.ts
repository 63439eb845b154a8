import { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";

/**
 * The error that callers see: a ContractError as it is, any other as LOOKUP_FAILED. Logs its cause: an
 * upstream's outage as a warning with what the operator should do, a defect of ours as an error. A cause in
 * `logged` is not logged again: fields of one request often fail for one reason.
 */
export function toCallerError(error: unknown, log: Logger, logged: Set<unknown>): ContractError {
  const shown = error instanceof ContractError ? error : new ContractError("LOOKUP_FAILED", { cause: error });
  const { cause, code, operatorHint } = shown;
  if (cause === undefined || logged.has(cause)) return shown;
  logged.add(cause);
  if (operatorHint !== undefined) log.warn({ err: cause, code }, operatorHint);
  else if (isAbort(cause)) log.debug("the caller left");
  else log.error({ err: cause, code }, "a request failed unexpectedly");
  return shown;
}

/** The reason of reads that were dropped because the caller left. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
