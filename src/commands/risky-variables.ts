import { statSync } from "node:fs";
import { isQuoted, PROXY_VARIABLES, type Environment } from "../config.ts";

/** The bit of a file's mode that lets every user of the machine read the file. */
const READABLE_BY_ALL = 0o004;

/**
 * Returns warnings about values that are valid but probably mistakes. No warning quotes a secret.
 */
export function warnAboutRisks(env: Environment): string[] {
  const isProduction = env.NODE_ENV === "production";
  const isPublic = env.HOST === "0.0.0.0" || env.HOST === "::";
  const proxy = PROXY_VARIABLES.find((name) => env[name]);
  const risks: readonly (readonly [isRisk: unknown, warning: string])[] = [
    [
      env.FEE_PAYER_KEYPAIR && isReadableByAll(env.FEE_PAYER_KEYPAIR),
      "FEE_PAYER_KEYPAIR: every user of this machine can read the key's file: run chmod 400, as the user that runs the service",
    ],
    [
      isQuoted(env.ESCROW_SEED),
      "ESCROW_SEED: the quotes around it are a part of the seed: remove them, unless the escrow program's seed has them",
    ],
    [
      proxy && env.NODE_USE_ENV_PROXY !== "1",
      `${proxy} has no effect: to call the network and the providers through the proxy, set NODE_USE_ENV_PROXY=1`,
    ],
    [
      isProduction && hostsIn(env.SOLANA_RPC_URL).size === 1,
      "SOLANA_RPC_URL: has one provider, which can withhold transactions or be down: add a second one's URL",
    ],
    [
      isProduction && !env.HANDLE_ALLOW_UNDERSCORE,
      "HANDLE_ALLOW_UNDERSCORE: not set, so handles with an underscore, which many real accounts have, are refused; set it to true to accept them, or to false to silence this warning",
    ],
    [
      isProduction && isPublic && !env.ADMIN_PORT,
      "ADMIN_PORT: not set, so everyone who reaches PORT can read /metrics",
    ],
    [
      isProduction && !env.TRUST_PROXY,
      "TRUST_PROXY: not set: if a proxy is in front, all callers behind it share one rate limit",
    ],
  ];
  return risks.filter(([isRisk]) => isRisk).map(([, warning]) => warning);
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
