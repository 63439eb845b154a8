import { PublicKey } from "@solana/web3.js";
import { z } from "zod";
import { readKeypair } from "./keypair.ts";
import { toLamports } from "./chain/primitives/lamports.ts";
import { NO_ESCROW_PROGRAM_IDS } from "./chain/launchpad/program-ids.ts";
import { isAddressRange } from "./contract/address-ranges.ts";
import { toError } from "./observability/thrown.ts";

const BARE = "expected a URL without user, password, query and fragment";
const TRUE_OR_FALSE = z.enum(["true", "false"], expected("true or false"));
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/**
 * The environment variables, in the order in which documents list them, described in Markdown.
 * Error messages say what is expected, and quote only values that cannot be secrets.
 */
export const Settings = z.object({
  SOCIAL_API_URL: required("the base URL of the social network's API, v2")
    .transform(parsedBy(parseUrl))
    .refine(isBare, BARE)
    .refine((url) => !/\/2\/*$/.test(url.pathname), "expected the base URL without /2")
    .describe("base URL of the social network's API v2"),
  ESCROW_PROGRAM_ID: required("the address of the escrow program in base58")
    .transform(parsedBy(parseAddress))
    .refine(
      (id) => !NO_ESCROW_PROGRAM_IDS.has(id),
      expected("the escrow program, not one from whose addresses nobody can withdraw"),
    )
    .describe("the escrow program, from which addresses are derived"),
  NODE_ENV: z
    .enum(["development", "test", "production"], expected("development, test or production"))
    .optional()
    .describe("`development`, `test` or `production`; `production` never starts the sandbox"),
  HOST: z
    .string()
    .default("127.0.0.1")
    .describe("address to listen on; `::` for all, or `0.0.0.0` for all of IPv4"),
  PORT: integer(0, 65_535).default(4_000).describe("port to listen on; 0 picks a free one"),
  ADMIN_PORT: integer(0, 65_535)
    .optional()
    .describe(
      "port for `/status`, and instead of `PORT` for `/metrics` and the details of `/readyz`",
    ),
  /** Addresses and CIDR ranges of the proxies whose `X-Forwarded-For` is trusted. */
  TRUST_PROXY: addressRanges().describe(
    "addresses or CIDR ranges of proxies whose `X-Forwarded-For` is trusted, comma-separated",
  ),
  /** Undefined: the operator has not decided; handles with an underscore are refused. */
  HANDLE_ALLOW_UNDERSCORE: TRUE_OR_FALSE.transform((text) => text === "true")
    .optional()
    .describe("`true`: handles may contain underscores; otherwise they may not"),

  /** Prefix of every route: empty, or a path with a leading and no trailing slash. */
  BASE_PATH: z
    .string()
    .regex(/^(\/[A-Za-z0-9._~-]+)+$/, expected("a path such as /api, without a trailing slash"))
    .default("")
    .describe("prefix of every route, such as `/api`"),
  /** The public URL of the home page, with a trailing slash. */
  PUBLIC_URL: z
    .string()
    .transform(parsedBy((text) => parseUrl(text.endsWith("/") ? text : `${text}/`)))
    .refine(isBare, BARE)
    .optional()
    .describe("public URL of `/`, for link previews and `servers` in `/openapi.json`"),
  /** The origins whose pages may call the API, besides the service's own; undefined: all. */
  CORS_ORIGINS: z
    .string()
    .transform(parsedBy(parseOrigins))
    .optional()
    .describe(
      "comma-separated origins whose pages may call the API, besides `PUBLIC_URL`'s, which production then needs; without it, all may",
    ),
  LOG_LEVEL: z
    .enum(LOG_LEVELS, expected(`one of ${LOG_LEVELS.join(", ")}`))
    .default("info")
    .describe("`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`"),
  SANDBOX: TRUE_OR_FALSE.optional().describe("`true`: a sandbox may listen on any `HOST`"),
  PLATFORM_PROGRAMS: z
    .string()
    .optional()
    .describe(
      "folder with the launch platform's own programs, for a sandbox to run instead of stand-ins: see `scripts/fetch-platform.ts`",
    ),

  RATE_LIMIT_MAX: integer(1, 1_000_000)
    .default(20)
    .describe("requests per client address and minute; 200 in the sandbox"),
  /**
   * Addresses and CIDR ranges of trusted callers, which have no rate limit and no per-caller
   * budget.
   */
  TRUSTED_CALLERS: addressRanges().describe(
    "addresses or CIDR ranges of callers without a rate limit",
  ),
  STREAMS_MAX: integer(0, 1_000_000)
    .default(1_000)
    .describe(
      "maximum accounts that open subscriptions of the process follow (0: none); blocks have [shares](../SECURITY.md#threats)",
    ),

  SOCIAL_TIMEOUT_MS: integer(1, 600_000)
    .default(5_000)
    .describe("deadline of a lookup at the network, queue and retries included"),
  SOCIAL_CACHE_SECONDS: integer(0, 86_400)
    .default(300)
    .describe('how long an account is cached (0: not at all); "no such account" for at most 60 s'),
  /** The most accounts that wait for a call to the social network. */
  SOCIAL_QUEUE_MAX: integer(0, 1_000_000)
    .default(1_000)
    .describe("handles that may queue for a call before `SERVICE_BUSY`"),
  /**
   * The most accounts to read from the network in an hour; 0: unlimited. The network charges for
   * each account.
   */
  SOCIAL_READS_PER_HOUR: integer(0, 1e9)
    .default(10_000)
    .describe("maximum accounts read from the network in an hour (0: unlimited)"),

  ESCROW_SEED: z
    .string()
    .refine((seed) => Buffer.byteLength(seed) <= 32, "expected at most 32 bytes of UTF-8")
    .default("social")
    .describe("first seed of the addresses"),
  /** The calls to the chain that all replicas together make in any second. */
  RPC_CALLS_PER_SECOND: integer(1, 1_000_000)
    .default(55)
    .describe(
      "calls to the chain that your RPC plan allows, for all replicas together; exact from 8 for each replica",
    ),
  RPC_TIMEOUT_MS: integer(1, 600_000)
    .default(5_000)
    .describe("deadline of a call to the chain, all endpoints and retries included"),
  // Shorter than the 60 s after which nginx and AWS's balancer give up.
  COLLECT_TIMEOUT_MS: integer(1, 600_000)
    .default(50_000)
    .describe(
      "how long a caller waits for a collect, and shutdown waits for transactions in flight",
    ),
  MIN_COLLECT_LAMPORTS: integer(1, 1e15)
    .default(100_000)
    .transform(toLamports)
    .describe("smallest amount to collect; less is `NOTHING_TO_COLLECT`"),
  MAX_PRIORITY_FEE_LAMPORTS: integer(0, 1e15)
    .default(50_000)
    .transform(toLamports)
    .describe("maximum priority fee of one transaction"),
  FEE_BUDGET_LAMPORTS_PER_HOUR: integer(0, 1e15)
    .default(50_000_000)
    .transform(toLamports)
    .describe("maximum fees of all collects together in an hour"),
});

/**
 * Must not appear in a log, error or metric. RPC URLs are here because they often contain a key.
 */
export const Secrets = z.object({
  SOCIAL_API_TOKEN: required("the app-only bearer token of the social network's API")
    .refine((token) => !/^bearer\b/i.test(token), {
      error: "expected the token alone, without the word Bearer",
      abort: true,
    })
    .regex(
      /^[\x21-\x7e]+$/,
      "expected printable ASCII without spaces (the value is not shown here)",
    )
    .describe("app-only bearer token of the network's API"),
  SOLANA_RPC_URL: required(
    "one or more JSON-RPC URLs, separated by commas, the preferred one first",
  )
    .transform(parsedBy((text) => parseList(text, parseUrl)))
    .describe("comma-separated JSON-RPC URLs, in order of preference"),
  FEE_PAYER_KEYPAIR: required("the path of the fee payer's keypair file, or its content")
    .transform(parsedBy(readKeypair))
    .describe(
      "path of a `solana-keygen` keypair file, or its content: a JSON array, or the secret key in base58",
    ),
  /**
   * The Redis or Valkey that replicas share: one server, one cluster, or nodes of one cluster.
   * Undefined: state stays in memory.
   */
  REDIS_URL: z
    .string()
    .transform(parsedBy(parseRedisUrls))
    .optional()
    .describe(
      "`redis://` or `rediss://`: replicas share limits, caches, locks and budgets there; otherwise in memory",
    ),
});

/** A message that quotes the value. Not for secrets. */
function expected(format: string) {
  return {
    error: ({ input }: { input?: unknown }) => `expected ${format}, got ${JSON.stringify(input)}`,
  };
}

function required(format: string) {
  return z.string(`missing. Expected ${format}`);
}

function isBare({ username, password, search, hash }: URL): boolean {
  return !(username || password || search || hash);
}

function integer(min: number, max: number) {
  const isWithin = (text: string) =>
    /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max;
  return z
    .string()
    .refine(isWithin, expected(`a whole number from ${min} to ${max}`))
    .transform(Number);
}

/** Accepts no number of proxies: a number would also trust clients that bypass the proxies. */
function addressRanges() {
  const areRanges = (text: string) => splitList(text).every(isAddressRange);
  return z
    .string()
    .refine(areRanges, expected("addresses or CIDR ranges, but no /0, separated by commas"))
    .transform(splitList)
    .default([]);
}

/** Reports an error of `parse` as the variable's problem. */
function parsedBy<T>(parse: (text: string) => T) {
  return (text: string, context: z.RefinementCtx): T => {
    try {
      return parse(text);
    } catch (error) {
      context.addIssue(toError(error).message);
      return z.NEVER;
    }
  };
}

function parseAddress(text: string): string {
  try {
    return new PublicKey(text).toBase58();
  } catch {
    // Longer than an address: perhaps a secret key in the wrong variable.
    const value = text.length > 44 ? `${text.length} characters` : JSON.stringify(text);
    throw new Error(`expected an address of 32 bytes in base58, got ${value}`);
  }
}

/** The messages do not quote the text, because providers put keys into URLs. */
function parseUrl(text: string, protocols = ["http:", "https:"]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !protocols.includes(url.protocol)) {
    const starts = protocols.map((protocol) => `${protocol}//`).join(" or ");
    throw new Error(`expected a URL that starts with ${starts} (the value is not shown here)`);
  }
  try {
    decodeURIComponent(url.username + url.password);
  } catch {
    throw new Error("expected the user and password in the URL to be percent-encoded");
  }
  return url;
}

/** Parses each entry of a list. The error says which entry is meant, without quoting it. */
function parseList<T>(text: string, parse: (entry: string) => T): T[] {
  return splitList(text).map((entry, i, all) => {
    try {
      return parse(entry);
    } catch (error) {
      const problem = entry === "" ? " is empty" : /\s/.test(entry) ? " contains a space" : "";
      throw new Error(`${toError(error).message}: entry ${i + 1} of ${all.length}${problem}`);
    }
  });
}

function parseRedisUrls(text: string): URL[] {
  const urls = splitList(text).map((part) => parseUrl(part, ["redis:", "rediss:"]));
  for (const { hostname, pathname, search, hash } of urls) {
    if (!hostname || !/^(\/\d*)?$/.test(pathname) || search || hash)
      throw new Error("expected redis://[user:password@]host[:port][/database number]");
  }
  if (urls.length === 1) return urls;
  const accesses = urls.map(
    ({ protocol, username, password }) => `${protocol}//${username}:${password}`,
  );
  if (new Set(accesses).size > 1 || urls.some(({ pathname }) => pathname.length > 1))
    throw new Error(
      "expected the same protocol, user and password, and no database number, in all URLs, which are nodes of one Redis Cluster",
    );
  return urls;
}

/** Returns undefined for `*`, which means all origins. */
function parseOrigins(text: string): string[] | undefined {
  if (text === "*") return undefined;
  return parseList(text, (entry) => {
    const url = URL.parse(entry);
    // Of a browser extension or an app: its URL has no origin.
    if (/^(?!https?:|file:|data:)[a-z][a-z\d+.-]*:\/\/[\w.-]+$/.test(entry)) return entry;
    const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
    if (isOrigin && !entry.includes("*")) return url.origin;
    throw new Error(
      "expected * or origins such as https://app.example, separated by commas (the value is not shown here)",
    );
  });
}

function splitList(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}
