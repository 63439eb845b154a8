import type { z } from "zod";
import { createIsWithin, overlap, parseAddress } from "./contract/address-ranges.ts";
import { Secrets, Settings } from "./variables.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export const VARIABLE_NAMES: readonly string[] = Object.keys({
  ...Secrets.shape,
  ...Settings.shape,
});

/**
 * The variables that select the upstreams. If none is set, the sandbox starts, but never in
 * production.
 */
const UPSTREAM_VARIABLES = [
  "SOCIAL_API_URL",
  "SOLANA_RPC_URL",
  "FEE_PAYER_KEYPAIR",
  "ESCROW_PROGRAM_ID",
];
/** A newcomer who follows the README sends more requests per minute than production allows. */
const SANDBOX_DEFAULTS: Environment = { RATE_LIMIT_MAX: "200" };
const SANDBOX_HINT = `To start the sandbox instead, set none of ${UPSTREAM_VARIABLES.join(", ")}, and do not set NODE_ENV=production.`;

/** Lists every problem with the environment, one per line. No line quotes a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(problems: readonly string[]) {
    super(["Tributary cannot start:", ...problems].join("\n  - "));
  }
}

export function wantsSandbox(env: Environment): boolean {
  return env.NODE_ENV !== "production" && UPSTREAM_VARIABLES.every((name) => !env[name]);
}

/** Converts SOCIAL_TIMEOUT_MS to `socialTimeoutMs`. */
type CamelCase<Name> = Name extends `${infer Word}_${infer Rest}`
  ? `${Lowercase<Word>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name & string>;
type InCamelCase<Values> = { readonly [Name in keyof Values as CamelCase<Name>]: Values[Name] };

/** The value of each variable, under its name in camel case. */
export type Config = InCamelCase<z.output<typeof Settings>> & {
  /** The most requests that one request may count as: RATE_LIMIT_MAX, in the sandbox production's. */
  readonly maxCost: number;
  readonly secrets: InCamelCase<z.output<typeof Secrets>>;
};

/** Variables of other programs, which are also used with Node's NODE_USE_ENV_PROXY=1. */
export const PROXY_VARIABLES = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"];

/** Whether a value has quotes around it, which `docker --env-file` keeps. */
export const isQuoted = (value = ""): boolean => /^(["']).*\1$/s.test(value);

const isLoopback = createIsWithin(["127.0.0.0/8", "::1"]);

/** Returns a problem if HOST lets other machines use the sandbox, but SANDBOX is not `true`. */
export function sandboxProblems({ HOST: host, SANDBOX }: Environment): string[] {
  if (!host || host === "localhost" || SANDBOX === "true" || isLoopback(parseAddress(host)))
    return [];
  return [
    `HOST: expected a loopback address for a sandbox, got "${host}". To let other machines use it, set SANDBOX=true`,
  ];
}

/**
 * Reads and checks all variables; empty ones count as absent. `sandbox` overrides `env`. Throws
 * ConfigError.
 */
export function readConfig(env: Environment, sandbox?: Environment): Config {
  const entries = Object.entries({ ...env, ...sandbox }).filter(([, text]) => text);
  const present: Environment = { ...(sandbox && SANDBOX_DEFAULTS), ...Object.fromEntries(entries) };
  const quotedNames = VARIABLE_NAMES.filter(
    (name) => name !== "ESCROW_SEED" && isQuoted(present[name]),
  );
  const settings = Settings.safeParse(present);
  const secrets = Secrets.safeParse(present);
  const problems = [settings, secrets]
    .flatMap(({ error }) => error?.issues ?? [])
    .filter(({ path: [name] }) => !quotedNames.includes(String(name)))
    .map(({ path: [name], message }) => `${String(name)}: ${message}`)
    .concat(quotedNames.map((name) => `${name}: expected no quotes around the value`));
  if (sandbox) problems.push(...sandboxProblems(env));
  for (const name of env.NODE_USE_ENV_PROXY === "1" ? PROXY_VARIABLES : []) {
    if (env[name] && !/^https?:$/.test(URL.parse(env[name])?.protocol ?? ""))
      problems.push(
        `${name}: expected a URL that starts with http:// or https:// (the value is not shown here)`,
      );
  }
  const { TRUSTED_CALLERS, TRUST_PROXY, NODE_ENV, CORS_ORIGINS, PUBLIC_URL } = settings.data ?? {};
  for (const range of TRUSTED_CALLERS ?? []) {
    if (TRUST_PROXY?.some((proxies) => overlap(range, proxies)))
      problems.push(
        `TRUSTED_CALLERS: expected no address of TRUST_PROXY, which all callers may seem to have, got "${range}"`,
      );
  }
  if (NODE_ENV === "production" && CORS_ORIGINS && !PUBLIC_URL)
    problems.push(
      "PUBLIC_URL: missing. With CORS_ORIGINS, production needs the public URL of the service, whose own pages may call it too",
    );
  if (problems.length > 0 || !settings.success || !secrets.success) {
    if (!UPSTREAM_VARIABLES.every((name) => present[name])) problems.push(SANDBOX_HINT);
    throw new ConfigError(problems);
  }
  const maxCost = Settings.shape.RATE_LIMIT_MAX.parse(env.RATE_LIMIT_MAX || undefined);
  return { ...inCamelCase(settings.data), maxCost, secrets: inCamelCase(secrets.data) };
}

export function inCamelCase<Values extends object>(values: Values): InCamelCase<Values> {
  const entries = Object.entries(values).map(([name, value]) => [
    name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    value as unknown,
  ]);
  return Object.fromEntries(entries) as InCamelCase<Values>;
}
