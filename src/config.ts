import ipaddr from "ipaddr.js";
import proxyAddr from "proxy-addr";
import { Variables } from "./variables.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The names of all variables that the service reads. */
export const VARIABLE_NAMES: readonly string[] = Object.keys(Variables.shape);

/** The variables that select the chain and the network. If none is set, the sandbox starts, but never in production. */
const UPSTREAM_VARIABLES = ["SOCIAL_API_URL", "SOLANA_RPC_URL", "FEE_PAYER_KEYPAIR", "ESCROW_PROGRAM_ID"];
/** A newcomer who follows the README sends more requests a minute than a caller in production may. */
const SANDBOX_DEFAULTS: Environment = { RATE_LIMIT_MAX: "200" };
const SANDBOX_HINT = `To start the sandbox instead, set none of ${UPSTREAM_VARIABLES.join(", ")}, and do not set NODE_ENV=production.`;

const LAUNCHPAD_VARIABLES = [
  "LAUNCHPAD_PROGRAM_ID",
  "LAUNCHPAD_AMM_PROGRAM_ID",
  "LAUNCHPAD_FEES_PROGRAM_ID",
] as const;

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

/** proxy-addr's names for ranges. Source: its README. */
const NAMED_RANGES: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.1/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/** Whether a range and a proxy, which may have a name, share an address: then one of the two contains the other. */
function overlap(range: string, proxy: string): boolean {
  const contains = (outer: string, inner: string) => proxyAddr.compile(outer)(inner.replace(/\/.*$/, ""), 0);
  const proxies = NAMED_RANGES[proxy] ?? [proxy];
  return proxies.some((each) => contains(range, each) || contains(each, range));
}

/** The operator's settings, read once at start. */
export type Config = ReturnType<typeof readConfig>;

/** What is wrong with HOST for a sandbox: other machines could use it, and SANDBOX does not allow that. */
export function sandboxProblems({ HOST: host, SANDBOX }: Environment): string[] {
  if (!host || host === "localhost" || SANDBOX === "true") return [];
  if (ipaddr.isValid(host) && ipaddr.process(host).range() === "loopback") return [];
  return [
    `HOST: expected a loopback address for a sandbox, got "${host}". To let other machines use it, set SANDBOX=true`,
  ];
}

/**
 * Reads and checks every variable; an empty one counts as absent. `sandbox` are the variables of a sandbox in
 * this process, which replace those of `env`.
 *
 * @throws {ConfigError} with all problems in one message.
 */
export function readConfig(env: Environment, sandbox?: Environment) {
  const given = Object.entries({ ...env, ...sandbox }).filter(([, text]) => text);
  const present: Environment = { ...(sandbox && SANDBOX_DEFAULTS), ...Object.fromEntries(given) };
  const { data, error } = Variables.safeParse(present);
  const problems = error?.issues.map(({ path, message }) => `${String(path[0])}: ${message}`) ?? [];
  if (sandbox) problems.push(...sandboxProblems(env));
  for (const range of data?.TRUSTED_CALLERS ?? []) {
    if (data?.TRUST_PROXY.some((proxies) => overlap(range, proxies)))
      problems.push(
        `TRUSTED_CALLERS: expected no address of TRUST_PROXY, which all callers may seem to have, got "${range}"`,
      );
  }
  for (const name of LAUNCHPAD_VARIABLES) {
    if (data && data[name] === data.ESCROW_PROGRAM_ID)
      problems.push(`ESCROW_PROGRAM_ID: expected another program than ${name}`);
  }
  if (!data || problems.length > 0) {
    throw new ConfigError(problems, UPSTREAM_VARIABLES.every((name) => present[name]) ? [] : [SANDBOX_HINT]);
  }

  return {
    host: data.HOST,
    port: data.PORT,
    adminPort: data.ADMIN_PORT,
    /** Prefix of every route: empty, or a path with a leading and no trailing slash. */
    basePath: data.BASE_PATH,
    /** The home page's URL for its visitors, with a trailing slash. */
    publicUrl: data.PUBLIC_URL,
    logLevel: data.LOG_LEVEL,
    /** Addresses and CIDR ranges of the proxies whose `X-Forwarded-For` is trusted. */
    trustedProxies: data.TRUST_PROXY,
    /** Addresses and CIDR ranges of callers without a rate limit and shares of budgets. */
    trustedCallers: data.TRUSTED_CALLERS,
    /** The origins whose pages may call the API, besides the service's own; undefined: all. */
    corsOrigins: data.CORS_ORIGINS,
    rateLimit: { max: data.RATE_LIMIT_MAX, windowSeconds: data.RATE_LIMIT_WINDOW_SECONDS },
    streams: {
      max: data.STREAMS_MAX,
      perAddress: data.STREAMS_PER_ADDRESS,
      seconds: data.STREAM_SECONDS,
    },
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
      /** The most accounts read from the network, which charges for each; 0: unlimited. */
      readsPerHour: data.SOCIAL_READS_PER_HOUR,
    },
    chain: {
      escrowProgramId: data.ESCROW_PROGRAM_ID,
      escrowSeed: data.ESCROW_SEED,
      launchpadProgramId: data.LAUNCHPAD_PROGRAM_ID,
      launchpadAmmProgramId: data.LAUNCHPAD_AMM_PROGRAM_ID,
      launchpadFeesProgramId: data.LAUNCHPAD_FEES_PROGRAM_ID,
      rpcTimeoutMs: data.RPC_TIMEOUT_MS,
      /** The most calls for histories in an hour. */
      historyCallsPerHour: data.HISTORY_CALLS_PER_HOUR,
      /** The most rent that one collect may pay for sweeps. */
      maxRent: data.MAX_RENT_LAMPORTS,
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
      /** Where replicas share state: one server, or nodes of one cluster. Undefined: state stays in memory. */
      redisUrls: data.REDIS_URL,
    },
  };
}
