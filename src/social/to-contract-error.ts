import { ContractError, retryIn } from "../contract/contract-error.ts";
import { operatorHint, SocialError } from "./social-error.ts";

const BUDGET_USED = {
  CALLER:
    "You have used your share of the accounts that this service reads from the social network in an hour.",
  SERVICE: "The service has used its budget for reading accounts from the social network.",
};

const CACHED_WORK = "Handles and ids that are cached still work.";

/**
 * Converts a SocialError to SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED, SERVICE_BUSY or
 * SOCIAL_API_UNAVAILABLE.
 */
export function toContractError(error: Error): Error {
  if (!(error instanceof SocialError)) return error;
  const { failure } = error;
  if (failure.kind === "not-found") return new ContractError("SOCIAL_NOT_FOUND");
  if (failure.kind === "queue-full") return new ContractError("SERVICE_BUSY");
  if (failure.kind === "budget-used")
    return new ContractError("SERVICE_BUSY", {
      ...retryIn(failure.retryAfterSeconds, BUDGET_USED[failure.scope], CACHED_WORK),
      extensions: { scope: failure.scope },
    });
  if (failure.kind === "rate-limited")
    return new ContractError(
      "SOCIAL_RATE_LIMITED",
      retryIn(failure.retryAfterSeconds, "The social network's rate limit is used up."),
    );
  return new ContractError("SOCIAL_API_UNAVAILABLE", {
    ...(failure.kind === "circuit-open" &&
      retryIn(failure.retryAfterSeconds, "The social network is temporarily unavailable.")),
    cause: error,
    operatorHint: operatorHint(error),
  });
}
