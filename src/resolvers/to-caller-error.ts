import { toLookupContractError } from "../chain/errors/to-contract-error.ts";
import { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import { toError } from "../observability/thrown.ts";
import { toContractError as fromSocial } from "../social/to-contract-error.ts";

/** Why an upstream failed a request, for the log. */
export interface Outage {
  readonly code: string;
  readonly cause: string;
  /** What the operator should do. */
  readonly hint: string;
}

/** Logs an outage on a line of its own. */
export function logOutage(log: Logger, { hint, ...outage }: Outage): void {
  log.warn(outage, hint);
}

/**
 * Converts errors of the chain and the social network, and unexpected ones to LOOKUP_FAILED. Logs
 * each cause once: fields of a request often fail together.
 */
export function toCallerError(
  error: unknown,
  log: Logger,
  loggedCauses: Set<unknown>,
  report: (outage: Outage) => void,
): ContractError {
  const known = toLookupContractError(fromSocial(toError(error)));
  const callerError =
    known instanceof ContractError ? known : new ContractError("LOOKUP_FAILED", { cause: error });
  const { cause, code, operatorHint } = callerError;
  if (cause === undefined || loggedCauses.has(cause)) return callerError;
  loggedCauses.add(cause);
  if (operatorHint !== undefined) report({ code, cause: toText(cause), hint: operatorHint });
  else if (isAbort(cause)) log.debug("the caller disconnected");
  else log.error({ err: cause, code }, "a request failed unexpectedly");
  return callerError;
}

/** The message of an error, and of the errors that caused it. */
function toText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${toText(error.cause)}`;
}

/** Whether a read was dropped because the caller disconnected. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
