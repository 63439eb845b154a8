import { readFileSync } from "node:fs";
import { createLoopbackServer } from "./loopback-server.ts";
import type { LoopbackAnswer, LoopbackRequest } from "./loopback-server.ts";

export interface NetworkAccount {
  /** As its owner spells it; lookups ignore case. */
  readonly handle: string;
  /** Decimal digits, at most 2^63 - 1. */
  readonly id: string;
  /** The display name. */
  readonly name: string;
  readonly suspended?: boolean | undefined;
  readonly verified?: boolean | undefined;
  readonly followers?: number | undefined;
  /** The picture's path on this server. The real network gives an https URL. */
  readonly picture?: string | undefined;
}

/** A request, successful or not. */
interface SocialCall {
  readonly path: string;
  /** The requested handles or ids. */
  readonly names: readonly string[];
}

/** The two lookups: by handle and by id. */
const LOOKUPS: Readonly<Record<string, { parameter: string; format: RegExp }>> = {
  "/2/users/by": { parameter: "usernames", format: /^[A-Za-z0-9_]{1,15}$/ },
  "/2/users": { parameter: "ids", format: /^[0-9]{1,19}$/ },
};
/** The only picture. It needs no token, because browsers load it. */
const PICTURE_PATH = "/pictures/creator.svg";
const PICTURE: LoopbackAnswer = {
  status: 200,
  headers: { "content-type": "image/svg+xml" },
  body: readFileSync(new URL("creator.svg", import.meta.url), "utf8"),
};
const CREDITS_PATH = "/2/usage/credits";
/** In US dollars. Lookups do not reduce it. */
const CREDITS = { free_balance: 0, prepaid_balance: 250, total_balance: 250 };
const MAX_NAMES = 100;
/** Ids are signed 64-bit integers. */
const MAX_ID = 2n ** 63n - 1n;

const PROBLEMS = "https://api.example/2/problems";

/**
 * Requests per window. The headers count down, but the sandbox does not enforce the limit. Far more
 * than the real network's 300, so that the service never delays calls.
 */
const RATE_LIMIT = 1_000_000;
const RATE_WINDOW_SECONDS = 15 * 60;

/**
 * Serves the account lookups of the social network's API v2 to callers that send the bearer
 * `token`.
 */
export async function createSocialNetwork(options: {
  accounts: readonly NetworkAccount[];
  token: string;
  host?: string | undefined;
  port: number;
}) {
  const byHandle = new Map<string, NetworkAccount>();
  const byId = new Map<string, NetworkAccount>();
  for (const account of options.accounts) add(account);

  function add(account: NetworkAccount): void {
    byHandle.set(account.handle.toLowerCase(), account);
    byId.set(account.id, account);
  }

  function handle(request: LoopbackRequest): LoopbackAnswer {
    if (request.url.pathname === PICTURE_PATH) return PICTURE;
    const lookup = LOOKUPS[request.url.pathname];
    const isCreditsPath = request.url.pathname === CREDITS_PATH;
    if (request.method !== "GET" || !(lookup || isCreditsPath)) return refusal(404, "Not Found");
    if (request.headers.authorization !== `Bearer ${options.token}`)
      return refusal(401, "Unauthorized");
    if (!lookup) return json(200, { data: CREDITS });
    const { parameter, format } = lookup;
    const names = namesIn(request);
    const problem = problemOf(names, parameter, format);
    if (problem) return json(400, invalidRequest(parameter, names, problem));

    const data: object[] = [];
    const errors: object[] = [];
    for (const name of new Set(names)) {
      const account = parameter === "ids" ? byId.get(name) : byHandle.get(name.toLowerCase());
      if (!account)
        errors.push(
          notFound(parameter, name, "Not Found Error", `Could not find user with ${parameter}`),
        );
      else if (account.suspended)
        errors.push(notFound(parameter, name, "Forbidden", "User has been suspended"));
      else
        data.push(
          toUser(
            account,
            request.url.searchParams.get("user.fields")?.split(",") ?? [],
            server.url,
          ),
        );
    }
    return json(200, { ...(data.length > 0 && { data }), ...(errors.length > 0 && { errors }) });
  }

  const nextRateLimitHeaders = createRateLimitHeaders();
  const server = await createLoopbackServer<SocialCall>({
    host: options.host,
    port: options.port,
    describe: (request) => ({ path: request.url.pathname, names: namesIn(request) }),
    handle(request) {
      const answer = handle(request);
      return { ...answer, headers: { ...answer.headers, ...nextRateLimitHeaders() } };
    },
  });

  return {
    ...server,
    /** Changes the handle of an account; the old handle is then free. */
    rename(handle: string, newHandle: string): void {
      const account = byHandle.get(handle.toLowerCase());
      if (!account) throw new Error(`No account has the handle ${handle}`);
      byHandle.delete(handle.toLowerCase());
      add({ ...account, handle: newHandle });
    },
  };
}

/** Converts an account to a user of the API, with the default fields and the requested ones. */
function toUser(account: NetworkAccount, fields: readonly string[], baseUrl: string): object {
  const { id, name, handle, verified = false, followers = 0, picture } = account;
  const optional: Record<string, unknown> = {
    verified,
    public_metrics: {
      followers_count: followers,
      following_count: 0,
      tweet_count: 0,
      listed_count: 0,
    },
    profile_image_url: picture && baseUrl + picture,
  };
  return {
    id,
    name,
    username: handle,
    ...Object.fromEntries(Object.entries(optional).filter(([field]) => fields.includes(field))),
  };
}

function namesIn({ url }: LoopbackRequest): string[] {
  const parameter = LOOKUPS[url.pathname]?.parameter ?? "";
  return url.searchParams.get(parameter)?.split(",") ?? [];
}

function problemOf(
  names: readonly string[],
  parameter: string,
  format: RegExp,
): string | undefined {
  if (names.length === 0) return `The \`${parameter}\` query parameter can not be empty`;
  if (names.length > MAX_NAMES) {
    return `The number of values in the \`${parameter}\` query parameter list [${names.length}] is not between 1 and ${MAX_NAMES}`;
  }
  const invalid = names.find(
    (name) => !format.test(name) || (parameter === "ids" && BigInt(name) > MAX_ID),
  );
  return invalid === undefined
    ? undefined
    : `The \`${parameter}\` query parameter value [${invalid}] does not match ${format.source}`;
}

function invalidRequest(parameter: string, names: readonly string[], message: string): object {
  return {
    errors: [{ parameters: { [parameter]: [names.join(",")] }, message }],
    title: "Invalid Request",
    detail: "One or more parameters to your request was invalid.",
    type: `${PROBLEMS}/invalid-request`,
  };
}

/** The error for an unknown or suspended account. Only the title and the detail differ. */
function notFound(parameter: string, name: string, title: string, detail: string): object {
  return {
    value: name,
    detail: `${detail}: [${name}].`,
    title,
    resource_type: "user",
    parameter,
    resource_id: name,
    type: `${PROBLEMS}/resource-not-found`,
  };
}

function refusal(status: number, title: string): LoopbackAnswer {
  return json(status, { title, type: "about:blank", status, detail: title });
}

function json(status: number, body: object): LoopbackAnswer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}

/** Headers that count down the rate limit; the reset time is in seconds since 1970. */
function createRateLimitHeaders(): () => Record<string, string> {
  let window = { reset: 0, remaining: RATE_LIMIT };
  return () => {
    const now = Math.floor(Date.now() / 1000);
    if (now >= window.reset) window = { reset: now + RATE_WINDOW_SECONDS, remaining: RATE_LIMIT };
    window.remaining = Math.max(0, window.remaining - 1);
    return {
      "x-rate-limit-limit": String(RATE_LIMIT),
      "x-rate-limit-remaining": String(window.remaining),
      "x-rate-limit-reset": String(window.reset),
    };
  };
}
