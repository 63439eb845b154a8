import { retryIn, type ErrorDetails } from "../contract/contract-error.ts";
import type { Shortage } from "./budget.ts";

/** Returns the error details for what exceeds the service's `budget`. */
export function refusalDetails(
  { scope, retryAfterSeconds }: Shortage,
  budget: string,
  ...more: readonly string[]
): ErrorDetails & { message: string } {
  if (retryAfterSeconds === undefined)
    return {
      message: `The service's ${budget} does not allow this collect.`,
      extensions: { scope },
    };
  const subject =
    scope === "CALLER" ? "You have used your share of the service's" : "The service has used its";
  const what = `${subject} ${budget} for now.`;
  return { ...retryIn(retryAfterSeconds, what, ...more), extensions: { scope } };
}
