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

/** The two lookups: by handle and by id. */
const LOOKUPS: Readonly<Record<string, { parameter: "usernames" | "ids"; format: RegExp }>> = {
  "/2/users/by": { parameter: "usernames", format: /^[A-Za-z0-9_]{1,15}$/ },
  "/2/users": { parameter: "ids", format: /^[0-9]{1,19}$/ },
};
/** The only picture. It needs no token, because browsers load it. */
const PICTURE_PATH = "/pictures/creator.svg";
const PICTURE = readFileSync(new URL("creator.svg", import.meta.url), "utf8");
const CREDITS_PATH = "/2/usage/credits";
/** In US dollars. Lookups do not reduce it. */
const CREDITS = { total_balance: 250 };
const MAX_NAMES = 100;

const PROBLEMS = "https://api.example/2/problems";

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
  const users = {
    usernames: new Map<string, NetworkAccount>(),
    ids: new Map<string, NetworkAccount>(),
  };
  for (const account of options.accounts) add(account);

  /** Adds an account, or another handle of one. */
  function add(account: NetworkAccount): void {
    users.usernames.set(account.handle.toLowerCase(), account);
    users.ids.set(account.id, account);
  }

  function handle({ method, url, headers }: LoopbackRequest): LoopbackAnswer {
    const path = url.pathname;
    if (path === PICTURE_PATH)
      return { status: 200, headers: { "content-type": "image/svg+xml" }, body: PICTURE };
    const lookup = LOOKUPS[path];
    if (method !== "GET" || !(lookup || path === CREDITS_PATH)) return problem(404, "Not Found");
    if (headers.authorization !== `Bearer ${options.token}`) return problem(401, "Unauthorized");
    if (!lookup) return json(200, { data: CREDITS });
    const { parameter, format } = lookup;
    const names = url.searchParams.get(parameter)?.split(",") ?? [];
    const fields = url.searchParams.get("user.fields")?.split(",") ?? [];
    if (names.length === 0 || names.length > MAX_NAMES || !names.every((name) => format.test(name)))
      return problem(400, "Invalid Request", `${PROBLEMS}/invalid-request`);

    const data: object[] = [];
    const errors: object[] = [];
    for (const name of new Set(names)) {
      const account = users[parameter].get(name.toLowerCase());
      if (!account || account.suspended) errors.push(missing(parameter, name));
      else data.push(toUser(account, fields, server.url));
    }
    return json(200, { ...(data.length > 0 && { data }), ...(errors.length > 0 && { errors }) });
  }

  const server = await createLoopbackServer({
    ...options,
    handle(request) {
      const { headers, ...answer } = handle(request);
      const resetAt = Math.floor(Date.now() / 1_000) + RATE_WINDOW_SECONDS;
      // Far more than the real network's 300 calls, so that the service never delays any.
      const limit = {
        "x-rate-limit-limit": "1000000",
        "x-rate-limit-remaining": "999999",
        "x-rate-limit-reset": String(resetAt),
      };
      return { ...answer, headers: { ...headers, ...limit } };
    },
  });

  return Object.assign(server, { add });
}

/** Converts an account to a user of the API, with the default fields and the requested ones. */
function toUser(account: NetworkAccount, fields: readonly string[], baseUrl: string): object {
  const { id, name, handle, verified = false, followers = 0, picture } = account;
  const optional = {
    verified,
    public_metrics: { followers_count: followers },
    profile_image_url: picture && baseUrl + picture,
  };
  return {
    id,
    name,
    username: handle,
    ...Object.fromEntries(Object.entries(optional).filter(([field]) => fields.includes(field))),
  };
}

/** The error for an unknown or suspended account. */
function missing(parameter: string, name: string): object {
  const [title, type] = ["Not Found Error", `${PROBLEMS}/resource-not-found`];
  return { value: name, title, resource_type: "user", parameter, resource_id: name, type };
}

function problem(status: number, title: string, type = "about:blank"): LoopbackAnswer {
  return json(status, { title, type, status, detail: title });
}

function json(status: number, body: object): LoopbackAnswer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}
