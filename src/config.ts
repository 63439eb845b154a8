import { readFileSync } from "node:fs";
import { getBase58Encoder } from "@solana/codecs-strings";
import { Keypair, PublicKey } from "@solana/web3.js";
import proxyAddr from "proxy-addr";
import { toLamports, type Lamports } from "./chain/lamports.ts";

/** Everything the operator decides, read once at start. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** Prefix of every route: empty, or a path that starts with a slash and does not end with one. */
  readonly basePath: string;
  readonly logLevel: string;
  /** Addresses and CIDR ranges of the proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  readonly rateLimit: { readonly max: number; readonly windowSeconds: number };
  readonly allowUnderscore: boolean;
  readonly social: {
    readonly apiUrl: URL;
    readonly timeoutMs: number;
    readonly concurrency: number;
    /** Handles that may wait for a call. */
    readonly queueMax: number;
    readonly cacheSeconds: number;
  };
  readonly chain: {
    readonly escrowProgramId: string;
    readonly escrowSeed: string;
    readonly launchpadProgramId: string;
    readonly launchpadAmmProgramId: string;
    readonly rpcTimeoutMs: number;
  };
  readonly collect: {
    readonly timeoutMs: number;
    readonly minLamports: Lamports;
    readonly maxPriorityFee: Lamports;
    readonly budgetLamportsPerHour: Lamports;
  };
  /** What must reach no log, error or metric. RPC addresses are here because they often carry a key. */
  readonly secrets: {
    readonly socialApiToken: string;
    readonly rpcUrls: readonly URL[];
    readonly feePayer: Keypair;
    /** What replicas share; undefined: everything is in memory. */
    readonly redisUrl: URL | undefined;
  };
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables that say which chain and network to use: all of them, or none. */
const UPSTREAM_VARIABLES = ["SOCIAL_API_URL", "SOLANA_RPC_URL", "FEE_PAYER_KEYPAIR", "ESCROW_PROGRAM_ID"];
const SANDBOX_CONDITION = `none of ${UPSTREAM_VARIABLES.join(", ")} is set and NODE_ENV is not production`;

/** Says everything that is wrong with the environment, a line a problem. No line quotes a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(problems: readonly string[]) {
    const lines = problems.map((problem) => `  - ${problem}`);
    super(["Tributary cannot start:", ...lines, `The sandbox starts when ${SANDBOX_CONDITION}.`].join("\n"));
  }
}

const MAINNET_LAUNCHPAD = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
const MAINNET_LAUNCHPAD_AMM = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";

const MISSING_HINTS: Readonly<Record<string, string>> = {
  SOCIAL_API_URL: "Expected the base address of the social network's API, v2",
  SOCIAL_API_TOKEN: "Expected the app-only bearer token of the social network's API",
  SOLANA_RPC_URL: "Expected one or more JSON-RPC addresses with commas between them, the preferred one first",
  FEE_PAYER_KEYPAIR: "Expected the path of the fee payer's keypair file, or its content",
  ESCROW_PROGRAM_ID: "Expected the address of the escrow program in base58",
};
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** Whether the environment names no upstream at all, outside of production: then the sandbox is meant. */
export function wantsSandbox(env: Environment): boolean {
  return env.NODE_ENV !== "production" && UPSTREAM_VARIABLES.every((name) => !env[name]);
}

/**
 * Reads and checks every variable; an empty one counts as absent.
 *
 * @throws {ConfigError} with all problems in one message.
 */
export function readConfig(env: Environment): Config {
  const problems: string[] = [];

  /** Runs `parse` on the variable's text; what it throws becomes the problem, named. */
  function read<T>(name: string, fallback: string | undefined, parse: (text: string) => T): T {
    const text = env[name] || fallback;
    try {
      if (text === undefined) throw new Error(`missing. ${MISSING_HINTS[name] ?? ""}`);
      return parse(text);
    } catch (error) {
      problems.push(`${name}: ${(error as Error).message}`);
      return undefined as T; // Never seen: a problem ends readConfig.
    }
  }
  const integer = (name: string, fallback: number, min: number, max: number) =>
    read(name, String(fallback), (text) => parseInteger(text, min, max));
  const lamports = (name: string, fallback: number, min: number) =>
    toLamports(integer(name, fallback, min, 1e15) || 0);
  const programId = (name: string, fallback?: string) => read(name, fallback, parseAddress);

  const config: Config = {
    host: read("HOST", "127.0.0.1", (text) => text),
    port: integer("PORT", 4000, 0, 65_535),
    basePath: env.BASE_PATH ? read("BASE_PATH", undefined, parseBasePath) : "",
    logLevel: read("LOG_LEVEL", "info", parseLogLevel),
    trustedProxies: env.TRUST_PROXY ? read("TRUST_PROXY", undefined, parseProxies) : [],
    rateLimit: {
      max: integer("RATE_LIMIT_MAX", 20, 1, 1_000_000),
      windowSeconds: integer("RATE_LIMIT_WINDOW_SECONDS", 60, 1, 86_400),
    },
    allowUnderscore: read("HANDLE_ALLOW_UNDERSCORE", "false", parseBoolean),
    social: {
      apiUrl: read("SOCIAL_API_URL", undefined, parseSocialUrl),
      timeoutMs: integer("SOCIAL_TIMEOUT_MS", 5_000, 1, 600_000),
      concurrency: integer("SOCIAL_CONCURRENCY", 4, 1, 1_000),
      queueMax: integer("SOCIAL_QUEUE_MAX", 1_000, 0, 1_000_000),
      cacheSeconds: integer("SOCIAL_CACHE_SECONDS", 300, 0, 86_400),
    },
    chain: {
      escrowProgramId: programId("ESCROW_PROGRAM_ID"),
      escrowSeed: read("ESCROW_SEED", "social", parseSeed),
      launchpadProgramId: programId("LAUNCHPAD_PROGRAM_ID", MAINNET_LAUNCHPAD),
      launchpadAmmProgramId: programId("LAUNCHPAD_AMM_PROGRAM_ID", MAINNET_LAUNCHPAD_AMM),
      rpcTimeoutMs: integer("RPC_TIMEOUT_MS", 5_000, 1, 600_000),
    },
    collect: {
      timeoutMs: integer("COLLECT_TIMEOUT_MS", 60_000, 1, 600_000),
      minLamports: lamports("MIN_COLLECT_LAMPORTS", 100_000, 1),
      maxPriorityFee: lamports("MAX_PRIORITY_FEE_LAMPORTS", 50_000, 0),
      budgetLamportsPerHour: lamports("FEE_BUDGET_LAMPORTS_PER_HOUR", 50_000_000, 0),
    },
    secrets: {
      socialApiToken: read("SOCIAL_API_TOKEN", undefined, parseToken),
      rpcUrls: read("SOLANA_RPC_URL", undefined, (text) =>
        text.split(",").map((part) => parseUrl(part.trim())),
      ),
      feePayer: read("FEE_PAYER_KEYPAIR", undefined, parseKeypair),
      redisUrl: env.REDIS_URL ? read("REDIS_URL", undefined, parseRedisUrl) : undefined,
    },
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

function parseInteger(text: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new Error(`expected a whole number from ${min} to ${max}, got ${JSON.stringify(text)}`);
  }
  return value;
}

function parseBoolean(text: string): boolean {
  if (text !== "true" && text !== "false")
    throw new Error(`expected true or false, got ${JSON.stringify(text)}`);
  return text === "true";
}

function parseLogLevel(text: string): string {
  if (!LOG_LEVELS.includes(text)) {
    throw new Error(`expected one of ${LOG_LEVELS.join(", ")}, got ${JSON.stringify(text)}`);
  }
  return text;
}

function parseBasePath(text: string): string {
  if (!/^(\/[A-Za-z0-9._~-]+)+$/.test(text)) {
    throw new Error(`expected a path such as /api, with no slash at its end, got ${JSON.stringify(text)}`);
  }
  return text;
}

function parseSeed(text: string): string {
  if (Buffer.byteLength(text) > 32) throw new Error("expected at most 32 bytes of UTF-8");
  return text;
}

function parseAddress(text: string): string {
  try {
    return new PublicKey(text).toBase58();
  } catch {
    // What is longer than an address may be a secret key in the wrong variable.
    const got = text.length > 44 ? `${text.length} characters` : JSON.stringify(text);
    throw new Error(`expected an address of 32 bytes in base58, got ${got}`);
  }
}

function parseProxies(text: string): string[] {
  const proxies = text.split(",").map((part) => part.trim());
  try {
    // A number would be a count of hops, which any client can pretend to have taken.
    if (proxies.some((proxy) => /^\d+$/.test(proxy))) throw new Error();
    proxyAddr.compile(proxies);
    return proxies;
  } catch {
    throw new Error(
      `expected addresses or CIDR ranges with commas between them, got ${JSON.stringify(text)}`,
    );
  }
}

/** The messages do not quote the text: addresses of providers carry keys. */
function parseUrl(text: string, protocols = ["http:", "https:"]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !protocols.includes(url.protocol)) {
    const starts = protocols.map((protocol) => `${protocol}//`).join(" or ");
    throw new Error(`expected an address that starts with ${starts} (its text is kept out of this message)`);
  }
  try {
    decodeURIComponent(url.username + url.password);
  } catch {
    throw new Error("expected the user and password in the address to be percent-encoded");
  }
  return url;
}

function parseSocialUrl(text: string): URL {
  const url = parseUrl(text);
  if (url.username || url.password) {
    throw new Error("expected no user or password in the address; the token goes into SOCIAL_API_TOKEN");
  }
  if (url.search || url.hash) throw new Error("expected a base address, with nothing after its path");
  return url;
}

function parseRedisUrl(text: string): URL {
  const url = parseUrl(text, ["redis:", "rediss:"]);
  if (!url.hostname || !/^(\/\d*)?$/.test(url.pathname) || url.search || url.hash) {
    throw new Error("expected redis://[user:password@]host[:port][/number of the database]");
  }
  return url;
}

function parseToken(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new Error("expected printable ASCII without spaces (its text is kept out of this message)");
  return text;
}

/** A path of a keypair file, or its content: the JSON array of 64 bytes, or the same bytes in base58. */
function parseKeypair(text: string): Keypair {
  const expected =
    "expected the path of a keypair file, its JSON array of 64 bytes, or the secret key in base58";
  let bytes = decodeSecretKey(text.trim());
  if (!bytes) {
    let content: string;
    try {
      content = readFileSync(text, "utf8");
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "unknown";
      throw new Error(`${expected}; it is no key, and as a path it cannot be read (${code})`);
    }
    bytes = decodeSecretKey(content.trim());
    if (!bytes) throw new Error(`${expected}; the file it names holds no such key`);
  }
  try {
    return Keypair.fromSecretKey(bytes);
  } catch {
    throw new Error(`${expected}; the public half of this key does not belong to its secret half`);
  }
}

function decodeSecretKey(text: string): Uint8Array | undefined {
  try {
    const bytes: unknown = text.startsWith("[") ? JSON.parse(text) : [...getBase58Encoder().encode(text)];
    return Array.isArray(bytes) && bytes.length === 64 && bytes.every(isByte)
      ? Uint8Array.from(bytes)
      : undefined;
  } catch {
    return undefined;
  }
}

function isByte(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255;
}
