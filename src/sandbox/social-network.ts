import { readFileSync } from "node:fs";
import {
  createLoopbackServer,
  type LoopbackAnswer,
  type LoopbackRequest,
} from "./loopback-server.ts";

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

/** The two lookups: the parameter that has the names, and the name of an account there. */
const LOOKUPS: Readonly<
  Record<string, readonly [parameter: string, nameOf: (account: NetworkAccount) => string]>
> = {
  "/2/users/by": ["usernames", ({ handle }) => handle.toLowerCase()],
  "/2/users": ["ids", ({ id }) => id],
};
/** The only picture. It needs no token, because browsers load it. */
const PICTURE_PATH = "/pictures/creator.svg";
const PICTURE: LoopbackAnswer = {
  status: 200,
  headers: { "content-type": "image/svg+xml" },
  body: readFileSync(new URL("creator.svg", import.meta.url), "utf8"),
};

const NOT_FOUND = "https://api.example/2/problems/resource-not-found";

/**
 * Serves the account lookups of the social network's API v2 to callers that send the bearer
 * `token`, as far as this service uses them. It has no limits, so the service delays no call.
 */
export async function createSocialNetwork(options: {
  accounts: readonly NetworkAccount[];
  token: string;
  host?: string | undefined;
  port: number;
}) {
  function handle({ url, headers }: LoopbackRequest): LoopbackAnswer {
    if (url.pathname === PICTURE_PATH) return PICTURE;
    const lookup = LOOKUPS[url.pathname];
    if (!lookup) return { status: 404, body: "" };
    if (headers.authorization !== `Bearer ${options.token}`) return { status: 401, body: "" };

    const [parameter, nameOf] = lookup;
    const users = new Map(options.accounts.map((account) => [nameOf(account), account]));
    const data: object[] = [];
    const errors: object[] = [];
    for (const name of new Set(url.searchParams.get(parameter)?.split(","))) {
      const account = users.get(name.toLowerCase());
      if (account && !account.suspended) data.push(toUser(account, server.url));
      else errors.push({ value: name, type: NOT_FOUND });
    }
    return {
      status: 200,
      headers: { "content-type": "application/json; charset=utf-8" },
      body: JSON.stringify({ data, errors }),
    };
  }

  const server = await createLoopbackServer({ ...options, handle });
  return server;
}

/** Converts an account to a user of the API, with the fields of a profile. */
function toUser(account: NetworkAccount, baseUrl: string): object {
  const { id, name, handle, verified = false, followers = 0, picture } = account;
  return {
    id,
    name,
    username: handle,
    verified,
    public_metrics: { followers_count: followers },
    profile_image_url: picture && baseUrl + picture,
  };
}
