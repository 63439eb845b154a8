import { PublicKey } from "@solana/web3.js";
import ipaddr from "ipaddr.js";
import proxyAddr from "proxy-addr";
import { z } from "zod";
import { readKeypair } from "./chain/collect/keypair.ts";
import { toLamports } from "./chain/lamports.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "./chain/launchpad/program-ids.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** The environment variables. Each message says what is expected, and quotes only values that cannot be secrets. */
export const Variables = z.object({
  PORT: integer(0, 65_535).default(4_000),
  HOST: z.string().default("127.0.0.1"),
  ADMIN_PORT: integer(0, 65_535).optional(),
  BASE_PATH: z
    .string()
    .regex(/^(\/[A-Za-z0-9._~-]+)+$/, expected("a path such as /api, without a trailing slash"))
    .default(""),
  SOCIAL_API_URL: required("the base URL of the social network's API, v2")
    .transform(parsedBy((text) => parseUrl(text)))
    .refine((url) => !url.username && !url.password, {
      error: "expected no user or password in the URL; set the token in SOCIAL_API_TOKEN",
      abort: true,
    })
    .refine((url) => !url.search && !url.hash, "expected a base URL without query and fragment"),
  SOCIAL_API_TOKEN: required("the app-only bearer token of the social network's API").regex(
    /^[\x21-\x7e]+$/,
    "expected printable ASCII without spaces (the value is not shown here)",
  ),
  SOLANA_RPC_URL: required(
    "one or more JSON-RPC URLs, separated by commas, the preferred one first",
  ).transform(parsedBy((text) => splitList(text).map((part) => parseUrl(part)))),
  FEE_PAYER_KEYPAIR: required("the path of the fee payer's keypair file, or its content").transform(
    parsedBy(readKeypair),
  ),
  ESCROW_PROGRAM_ID: address(required("the address of the escrow program in base58")),
  ESCROW_SEED: z
    .string()
    .refine((seed) => Buffer.byteLength(seed) <= 32, "expected at most 32 bytes of UTF-8")
    .default("social"),
  LAUNCHPAD_PROGRAM_ID: address().default(LAUNCHPAD_PROGRAM_ID),
  LAUNCHPAD_AMM_PROGRAM_ID: address().default(LAUNCHPAD_AMM_PROGRAM_ID),
  REDIS_URL: z
    .string()
    .transform(parsedBy((text) => parseUrl(text, ["redis:", "rediss:"])))
    .refine(
      ({ hostname, pathname, search, hash }) => hostname && /^(\/\d*)?$/.test(pathname) && !search && !hash,
      "expected redis://[user:password@]host[:port][/database number]",
    )
    .optional(),
  TRUST_PROXY: z
    .string()
    .refine(isProxyList, expected("addresses or CIDR ranges, separated by commas"))
    .transform(splitList)
    .default([]),
  RATE_LIMIT_MAX: integer(1, 1_000_000).default(20),
  RATE_LIMIT_WINDOW_SECONDS: integer(1, 86_400).default(60),
  HANDLE_ALLOW_UNDERSCORE: z
    .enum(["true", "false"], expected("true or false"))
    .transform((text) => text === "true")
    .optional(),
  SOCIAL_CONCURRENCY: integer(1, 1_000).default(4),
  SOCIAL_QUEUE_MAX: integer(0, 1_000_000).default(1_000),
  SOCIAL_TIMEOUT_MS: integer(1, 600_000).default(5_000),
  SOCIAL_CACHE_SECONDS: integer(0, 86_400).default(300),
  RPC_TIMEOUT_MS: integer(1, 600_000).default(5_000),
  COLLECT_TIMEOUT_MS: integer(1, 600_000).default(60_000),
  MIN_COLLECT_LAMPORTS: integer(1, 1e15).default(100_000).transform(toLamports),
  MAX_PRIORITY_FEE_LAMPORTS: integer(0, 1e15).default(50_000).transform(toLamports),
  PRIORITY_FEE_FLOOR_MICROLAMPORTS: integer(0, 1e12).default(1_000).transform(BigInt),
  PRIORITY_FEE_PERCENTILE: integer(0, 100).default(75),
  FEE_BUDGET_LAMPORTS_PER_HOUR: integer(0, 1e15).default(50_000_000).transform(toLamports),
  LOG_LEVEL: z.enum(LOG_LEVELS, expected(`one of ${LOG_LEVELS.join(", ")}`)).default("info"),
  NODE_ENV: z
    .enum(["development", "test", "production"], expected("development, test or production"))
    .optional(),
  SANDBOX: z.enum(["true", "false"], expected("true or false")).optional(),
});

/** The names of all variables that the service reads. */
export const VARIABLE_NAMES: readonly string[] = Object.keys(Variables.shape);

/** The variables that select the chain and the network. Without any of them the sandbox starts. */
const UPSTREAM_VARIABLES = ["SOCIAL_API_URL", "SOLANA_RPC_URL", "FEE_PAYER_KEYPAIR", "ESCROW_PROGRAM_ID"];
const SANDBOX_HINT = `To start the sandbox instead, set none of ${UPSTREAM_VARIABLES.join(", ")}, and do not set NODE_ENV=production.`;

/** Lists every problem with the environment, one per line. No line quotes a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(problems: readonly string[], hints: readonly string[] = []) {
    const lines = problems.map((problem) => `  - ${problem}`);
    super(["Tributary cannot start:", ...lines, ...hints].join("\n"));
  }
}

/** True if the environment names no upstream and is not production. */
export function wantsSandbox(env: Environment): boolean {
  return env.NODE_ENV !== "production" && UPSTREAM_VARIABLES.every((name) => !env[name]);
}

/** The operator's settings, read once at start. */
export type Config = ReturnType<typeof readConfig>;

/** What is wrong with HOST for a sandbox: other machines could use it, and SANDBOX does not allow that. */
export function sandboxProblems({ HOST: host, SANDBOX }: Environment): string[] {
  if (!host || host === "localhost" || SANDBOX === "true") return [];
  if (ipaddr.isValid(host) && ipaddr.process(host).range() === "loopback") return [];
  return [`HOST: expected a loopback address for a sandbox, got "${host}". Or set SANDBOX=true`];
}

/**
 * Reads and checks every variable; an empty one counts as absent. `sandbox` are the variables of a sandbox in
 * this process, which replace those of `env`.
 *
 * @throws {ConfigError} with all problems in one message.
 */
export function readConfig(env: Environment, sandbox?: Environment) {
  const present = Object.fromEntries(Object.entries({ ...env, ...sandbox }).filter(([, text]) => text));
  const { data, error } = Variables.safeParse(present);
  const problems = error?.issues.map(({ path, message }) => `${String(path[0])}: ${message}`) ?? [];
  if (sandbox) problems.push(...sandboxProblems(env));
  if (!data || problems.length > 0) {
    throw new ConfigError(problems, UPSTREAM_VARIABLES.every((name) => present[name]) ? [] : [SANDBOX_HINT]);
  }

  return {
    host: data.HOST,
    port: data.PORT,
    adminPort: data.ADMIN_PORT,
    /** Prefix of every route: empty, or a path with a leading and no trailing slash. */
    basePath: data.BASE_PATH,
    logLevel: data.LOG_LEVEL,
    /** Addresses and CIDR ranges of the proxies whose `X-Forwarded-For` is trusted. */
    trustedProxies: data.TRUST_PROXY,
    rateLimit: { max: data.RATE_LIMIT_MAX, windowSeconds: data.RATE_LIMIT_WINDOW_SECONDS },
    isProduction: data.NODE_ENV === "production",
    /** Undefined: the operator has not decided; handles with an underscore are refused. */
    allowUnderscore: data.HANDLE_ALLOW_UNDERSCORE,
    social: {
      apiUrl: data.SOCIAL_API_URL,
      timeoutMs: data.SOCIAL_TIMEOUT_MS,
      concurrency: data.SOCIAL_CONCURRENCY,
      /** The most handles that wait for a call. */
      queueMax: data.SOCIAL_QUEUE_MAX,
      cacheSeconds: data.SOCIAL_CACHE_SECONDS,
    },
    chain: {
      escrowProgramId: data.ESCROW_PROGRAM_ID,
      escrowSeed: data.ESCROW_SEED,
      launchpadProgramId: data.LAUNCHPAD_PROGRAM_ID,
      launchpadAmmProgramId: data.LAUNCHPAD_AMM_PROGRAM_ID,
      rpcTimeoutMs: data.RPC_TIMEOUT_MS,
    },
    collect: {
      timeoutMs: data.COLLECT_TIMEOUT_MS,
      minLamports: data.MIN_COLLECT_LAMPORTS,
      maxPriorityFee: data.MAX_PRIORITY_FEE_LAMPORTS,
      /** In micro-lamports per compute unit. */
      priceFloor: data.PRIORITY_FEE_FLOOR_MICROLAMPORTS,
      pricePercentile: data.PRIORITY_FEE_PERCENTILE,
      budgetLamportsPerHour: data.FEE_BUDGET_LAMPORTS_PER_HOUR,
    },
    /** Never in a log, error or metric. RPC URLs are here because they often contain a key. */
    secrets: {
      socialApiToken: data.SOCIAL_API_TOKEN,
      rpcUrls: data.SOLANA_RPC_URL,
      feePayer: data.FEE_PAYER_KEYPAIR,
      /** Where replicas share state. Undefined: state stays in memory. */
      redisUrl: data.REDIS_URL,
    },
  };
}

/** A message that quotes the value. Not for secrets. */
function expected(format: string) {
  return { error: ({ input }: { input?: unknown }) => `expected ${format}, got ${JSON.stringify(input)}` };
}

/** A variable without a default. */
function required(format: string) {
  return z.string(`missing. Expected ${format}`);
}

function integer(min: number, max: number) {
  const isWithin = (text: string) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max;
  return z
    .string()
    .refine(isWithin, expected(`a whole number from ${min} to ${max}`))
    .transform(Number);
}

function address(text = z.string()) {
  return text.transform(parsedBy(parseAddress));
}

/** Reports an error of `parse` as the variable's problem. */
function parsedBy<T>(parse: (text: string) => T) {
  return (text: string, context: z.RefinementCtx): T => {
    try {
      return parse(text);
    } catch (error) {
      context.addIssue((error as Error).message);
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

function splitList(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}

function isProxyList(text: string): boolean {
  const proxies = splitList(text);
  // proxy-addr reads `1` as the address 0.0.0.1. Refuse counts: a client that bypasses a proxy could fake its address.
  if (proxies.some((proxy) => /^\d+$/.test(proxy))) return false;
  try {
    proxyAddr.compile(proxies);
    return true;
  } catch {
    return false;
  }
}
