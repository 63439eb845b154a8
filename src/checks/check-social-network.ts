import type { SocialClient } from "../social/api-client.ts";
import { isOperatorProblem } from "../social/social-error.ts";
import { bad, good, poor, type Finding } from "./finding.ts";

export async function checkSocialNetwork(
  client: Pick<SocialClient, "check">,
  { host }: URL,
): Promise<Finding> {
  const failure = await client.check();
  if (!failure) return good("SOCIAL_API_TOKEN", `the social network accepts it at ${host}`);
  if (failure.kind === "rate-limited") {
    const text = `the network allows no calls for ${failure.retryAfterSeconds} s: find what else uses this token`;
    return poor("SOCIAL_API_TOKEN", text);
  }
  const fails = `${host} does not answer`;
  if (failure.kind === "unreachable" || failure.kind === "timeout") {
    const fix = "check the URL, and that this machine can connect to it";
    return bad("SOCIAL_API_URL", `${fails}, so lookups of new handles fail: ${fix}`, {
      isReported: true,
    });
  }
  const status = failure.kind === "refused" ? failure.status : undefined;
  if (isOperatorProblem(failure)) {
    const text =
      status === 401
        ? `${host} refuses it: create a new app-only bearer token in the network's developer console`
        : `${host} refuses its app (${status}): add credit or access in the network's developer console`;
    return bad("SOCIAL_API_TOKEN", text, { isReported: true });
  }
  const details = status === undefined ? "" : ` (${status})`;
  const fix = "check the URL, and the network's status page";
  return bad(
    "SOCIAL_API_URL",
    `${fails} like the network's API v2${details}, so lookups of new handles fail: ${fix}`,
    { isReported: true },
  );
}
