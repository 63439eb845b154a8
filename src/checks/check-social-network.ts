import type { SocialClient } from "../social/api-client.ts";
import { isOperatorProblem } from "../social/social-error.ts";
import { bad, good, poor, type Finding } from "./finding.ts";

export async function checkSocialNetwork(
  client: Pick<SocialClient, "check">,
  { host }: URL,
): Promise<Finding> {
  const failure = await client.check();
  if (!failure) return good("SOCIAL_API_TOKEN", `the social network accepts it at ${host}`);
  const fails = `${host} does not answer`;
  switch (failure.kind) {
    case "rate-limited":
      return poor(
        "SOCIAL_API_TOKEN",
        `the network allows no calls for ${failure.retryAfterSeconds} s: find what else uses this token`,
      );
    case "unreachable":
    case "timeout": {
      const fix = "check the URL, and that this machine can connect to it";
      const text = `${fails}, so lookups of new handles fail: ${fix}`;
      return bad("SOCIAL_API_URL", text, { isReported: true });
    }
    case "refused": {
      const { status } = failure;
      return isOperatorProblem(failure) ? tokenRefused(host, status) : notTheApi(` (${status})`);
    }
    case "unreadable":
    case "not-found":
    case "queue-full":
    case "budget-used":
    case "lookup-timeout":
    case "circuit-open":
      return notTheApi("");
  }

  function notTheApi(details: string): Finding {
    const fix = "check the URL, and the network's status page";
    const text = `${fails} like the network's API v2${details}, so lookups of new handles fail: ${fix}`;
    return bad("SOCIAL_API_URL", text, { isReported: true });
  }
}

function tokenRefused(host: string, status: number): Finding {
  const text =
    status === 401
      ? `${host} refuses it: create a new app-only bearer token in the network's developer console`
      : `${host} refuses its app (${status}): add credit or access in the network's developer console`;
  return bad("SOCIAL_API_TOKEN", text, { isReported: true });
}
