import { statSync } from "node:fs";
import { BASE_FEE_LAMPORTS } from "../chain/units/priority-fee.ts";
import { isQuoted, PROXY_VARIABLES, wantsSandbox, type Environment } from "../config.ts";
import { Settings } from "../variables.ts";

/** The bit of a file's mode that lets every user of the machine read the file. */
const READABLE_BY_ALL = 0o004;
/** A shorter deadline was probably meant in seconds. */
const LEAST_MS = 100;
/** A replica's least part of the plan that it never exceeds: see `createChainCallPlan`. */
const LEAST_CALLS = 8;
/** How long finality takes before Alpenglow, and rarely after: 32 slots of 400 ms. */
const FINALITY_MS = 13_000;

/**
 * Returns warnings about values that are valid but probably mistakes. No warning quotes a secret.
 */
export function warnAboutRisks(env: Environment): string[] {
  const isProduction = env.NODE_ENV === "production";
  const warnings: string[] = [];
  const warnIf = (isRisk: unknown, warning: string) => {
    if (isRisk) warnings.push(warning);
  };
  const valueOf = (name: keyof typeof Settings.shape) =>
    Number(env[name] || Settings.shape[name].safeParse(undefined).data);
  for (const name of ["SOCIAL_TIMEOUT_MS", "RPC_TIMEOUT_MS"] as const)
    warnIf(
      valueOf(name) < LEAST_MS,
      `${name}: ${env[name]} ms is very short: is it in seconds? It is in milliseconds`,
    );
  warnIf(
    env.FEE_PAYER_KEYPAIR && isReadableByAll(env.FEE_PAYER_KEYPAIR),
    "FEE_PAYER_KEYPAIR: every user of this machine can read the key's file: run chmod 400, as the user that runs the service",
  );
  warnIf(
    valueOf("MIN_COLLECT_LAMPORTS") <= BASE_FEE_LAMPORTS,
    `MIN_COLLECT_LAMPORTS: ${env.MIN_COLLECT_LAMPORTS} is below the fee of a collect, ${BASE_FEE_LAMPORTS} lamports and the priority fee: the service would pay more than it moves`,
  );
  warnIf(
    env.SANDBOX === "true" && isProduction,
    "SANDBOX has no effect: with NODE_ENV=production no sandbox starts. Remove one of the two",
  );
  warnIf(
    env.PLATFORM_PROGRAMS && !wantsSandbox(env),
    "PLATFORM_PROGRAMS has no effect: no sandbox starts, and only a sandbox's chain runs these programs. Remove it",
  );
  warnIf(
    env.CORS_ORIGINS?.includes("*."),
    "CORS_ORIGINS: an origin with * matches no page: list each origin, or set only * for all",
  );
  const collectMs = valueOf("COLLECT_TIMEOUT_MS");
  warnIf(
    collectMs < FINALITY_MS,
    `COLLECT_TIMEOUT_MS: ${collectMs} ms is less than the ${FINALITY_MS} that finality can take, so callers may get COLLECT_FAILED for collects that succeed: raise it`,
  );
  const priorityFee = valueOf("MAX_PRIORITY_FEE_LAMPORTS");
  const budget = valueOf("FEE_BUDGET_LAMPORTS_PER_HOUR");
  warnIf(
    budget > 0 && priorityFee > budget,
    `MAX_PRIORITY_FEE_LAMPORTS: ${priorityFee} is more than the ${budget} of FEE_BUDGET_LAMPORTS_PER_HOUR, so one collect can use up the budget: lower it`,
  );
  warnIf(
    valueOf("SOCIAL_READS_PER_HOUR") === 0,
    "SOCIAL_READS_PER_HOUR: 0 means unlimited, and the network charges for each account that callers look up: set the most that you would pay for",
  );
  warnIf(
    isQuoted(env.ESCROW_SEED),
    "ESCROW_SEED: the quotes around it are a part of the seed: remove them, unless the escrow program's seed has them",
  );
  warnIf(
    valueOf("RPC_CALLS_PER_SECOND") < LEAST_CALLS,
    `RPC_CALLS_PER_SECOND: with less than ${LEAST_CALLS} for each replica, a replica may exceed its part, by up to 4 calls in a second: choose a larger plan`,
  );
  const proxy = PROXY_VARIABLES.find((name) => env[name]);
  warnIf(
    proxy && env.NODE_USE_ENV_PROXY !== "1",
    `${proxy} has no effect: to call the network and the providers through the proxy, set NODE_USE_ENV_PROXY=1`,
  );
  if (!isProduction) return warnings;
  warnIf(
    hostsIn(env.SOLANA_RPC_URL).size === 1,
    "SOLANA_RPC_URL: has one provider, which can withhold transactions or be down: add a second one's URL",
  );
  warnIf(
    !env.HANDLE_ALLOW_UNDERSCORE,
    "HANDLE_ALLOW_UNDERSCORE: not set, so handles with an underscore, which many real accounts have, are refused; set it to true to accept them, or to false to silence this warning",
  );
  const isPublic = env.HOST === "0.0.0.0" || env.HOST === "::";
  warnIf(
    isPublic && !env.ADMIN_PORT,
    "ADMIN_PORT: not set, so everyone who reaches PORT can read /metrics",
  );
  warnIf(
    !env.TRUST_PROXY,
    "TRUST_PROXY: not set: if a proxy is in front, all callers behind it share one rate limit",
  );
  return warnings;
}

function hostsIn(urls = ""): Set<string | undefined> {
  return new Set(urls.split(",").map((url) => URL.parse(url.trim())?.hostname));
}

/** Whether every user can read the file at `path`, which may also be a key instead of a path. */
export function isReadableByAll(path: string): boolean {
  try {
    return (statSync(path).mode & READABLE_BY_ALL) !== 0;
  } catch {
    return false;
  }
}
