import { ContractError, retryIn } from "../contract/contract-error.ts";
import { refusalDetails } from "../fairness/refusal-details.ts";
import { operatorHint, SocialError } from "./social-error.ts";

const READS = "budget for reading accounts from the social network";
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
    return new ContractError("SERVICE_BUSY", refusalDetails(failure, READS, CACHED_WORK));
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
