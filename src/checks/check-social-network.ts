import { remedyOf } from "../observability/connection-error.ts";
import type { SocialClient } from "../social/api-client.ts";
import { isOperatorProblem } from "../social/social-error.ts";
import { bad, good, poor, type Finding } from "./finding.ts";

export async function checkSocialNetwork(
  client: Pick<SocialClient, "check">,
  url: URL,
): Promise<Finding> {
  const { host } = url;
  const failure = await client.check();
  if (!failure) return good("SOCIAL_API_TOKEN", `the social network accepts it at ${host}`);
  const fails = `${host} does not answer`;
  switch (failure.kind) {
    case "rate-limited":
      return poor(
        "SOCIAL_API_TOKEN",
        `the network allows no calls for ${failure.retryAfterSeconds} s: find what else uses this token`,
      );
    case "blocked": {
      const text = `${host} blocks this machine's address (403 with a page instead of JSON): use another address, or ask the network to allow this one`;
      return bad("SOCIAL_API_URL", text, { isReported: true });
    }
    case "unreachable":
    case "timeout": {
      const { code = failure.kind } = { code: undefined, ...failure };
      const fix = remedyOf(code, url) ?? "check the URL, and that this machine can connect to it";
      const text = `${fails} (${code}), so lookups of new handles fail: ${fix}`;
      return bad("SOCIAL_API_URL", text, { isReported: true });
    }
    case "refused": {
      const { status, words } = failure;
      const details = [status, words].filter(Boolean).join(" ");
      return isOperatorProblem(failure)
        ? tokenRefused(host, status, details)
        : notTheApi(` (${details})`);
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

function tokenRefused(host: string, status: number, details: string): Finding {
  const text =
    status === 401
      ? `${host} refuses it (${details}): create a new app-only bearer token in the network's developer console`
      : `${host} refuses its app (${details}): add credit or access in the network's developer console`;
  return bad("SOCIAL_API_TOKEN", text, { isReported: true });
}
