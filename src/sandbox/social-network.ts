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

/** The two lookups, by handle and by id, and the parameter that has the names. */
const LOOKUPS: Readonly<Record<string, string>> = {
  "/2/users/by": "usernames",
  "/2/users": "ids",
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
  /** By the parameter of a lookup and a name in it, such as `usernames creator`. */
  const users = new Map<string, NetworkAccount>();
  for (const account of options.accounts) if (!account.suspended) add(account);

  /** Adds an account, or another handle of one. */
  function add(account: NetworkAccount): void {
    users.set(`usernames ${account.handle.toLowerCase()}`, account);
    users.set(`ids ${account.id}`, account);
  }

  function handle({ url, headers }: LoopbackRequest): LoopbackAnswer {
    if (url.pathname === PICTURE_PATH) return PICTURE;
    const parameter = LOOKUPS[url.pathname];
    if (!parameter) return { status: 404, body: "" };
    if (headers.authorization !== `Bearer ${options.token}`) return { status: 401, body: "" };

    const data: object[] = [];
    const errors: object[] = [];
    for (const name of new Set(url.searchParams.get(parameter)?.split(","))) {
      const account = users.get(`${parameter} ${name.toLowerCase()}`);
      if (account) data.push(toUser(account, server.url));
      else errors.push({ value: name, type: NOT_FOUND });
    }
    return {
      status: 200,
      headers: { "content-type": "application/json; charset=utf-8" },
      body: JSON.stringify({ data, errors }),
    };
  }

  const server = await createLoopbackServer({ ...options, handle });

  return Object.assign(server, { add });
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
