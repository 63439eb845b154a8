import type { SocialClient } from "../social/api-client.ts";
import { isOperatorProblem, operatorHint } from "../social/social-error.ts";
import { bad, good, poor, type Finding } from "./finding.ts";

export async function checkSocialNetwork(
  client: Pick<SocialClient, "check">,
  { host }: URL,
): Promise<Finding> {
  const error = await client.check();
  if (!error) return good("SOCIAL_API_TOKEN", `the social network accepts it at ${host}`);
  const { failure } = error;
  if (failure.kind === "rate-limited")
    return poor(
      "SOCIAL_API_TOKEN",
      `the network allows no calls for ${failure.retryAfterSeconds} s: find what else uses this token`,
    );
  const variable = isOperatorProblem(failure) ? "SOCIAL_API_TOKEN" : "SOCIAL_API_URL";
  return bad(variable, `${operatorHint(error)} (${host})`, { isReported: true });
}
