import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { toLamports } from "../chain/primitives/lamports.ts";
import { checkChain } from "../checks/check-chain.ts";
import { checkSocialNetwork } from "../checks/check-social-network.ts";
import { bad, good, poor, type Finding } from "../checks/finding.ts";
import type { Config } from "../config.ts";
import { SOCIAL_ID_EXPECTED, toSocialId } from "../contract/social-id.ts";
import { createLogger } from "../observability/log.ts";
import { createServices } from "../services.ts";
import { redisKeys } from "../store/redis-keys.ts";
import { createRedis, type Redis } from "../store/redis.ts";
import { remedyFor } from "../store/redis-remedies.ts";
import { script } from "../store/script.ts";
import { comparePlatform } from "./compare-platform.ts";
import { addMs, monotonicNow } from "../time/monotonic.ts";

/** Returns an empty string if the user may not run INFO. */
const REDIS_INFO = script({
  keys: ["probe"],
  answer: z.string(),
  text: `
redis.call('SET', probe, '1', 'PX', 1000)
local info = redis.pcall('INFO')
return type(info) == 'string' and info or ''
`,
});
const LEAST_REDIS_VERSION = 7;
/**
 * Longer than the service waits, because a slow connection from this machine does not mean that the
 * URL is wrong.
 */
const REDIS_TIMEOUT_MS = 5_000;
const REDIS_RETRY_MS = 200;

/** What the network charges for an account. Source: its price list. */
const DOLLARS_PER_ACCOUNT = 0.01;
/** Credit for fewer accounts is low. */
const FEW_ACCOUNTS = 1_000;

/** Doctor simulates the smallest collects too, and waits for no calls. */
const ALL_COLLECTS = { minCollectLamports: toLamports(1), rpcCallsPerSecond: 1_000_000 };

const LABELS = { good: "ok   ", poor: "check", bad: "WRONG" };

/**
 * Checks a configuration against its upstreams without spending anything. Prints each finding as
 * soon as it is known. Returns the exit code: 1 if something is at fault. `id`: a social id whose
 * address to print. `mints`: coins with which to simulate the launch platform's instructions.
 */
export async function examine(
  config: Config,
  print: (line: string) => void,
  options: {
    warnings: readonly string[];
    id: string | undefined;
    mints: readonly string[] | undefined;
  },
): Promise<number> {
  const { warnings, id, mints } = options;
  const atFault = new Set<string>();
  function report({ state, variable, text }: Finding): void {
    print(`${LABELS[state]}  ${variable}: ${text}`);
    if (state === "bad") atFault.add(variable);
  }
  for (const warning of warnings) print(`${LABELS.poor}  ${warning}`);

  const { socialApiUrl, secrets } = config;
  const { redisUrl } = secrets;
  const log = createLogger("silent");
  const { registry, social, chain } = createServices(
    { ...config, ...ALL_COLLECTS, secrets: { ...secrets, redisUrl: undefined } },
    log,
  );
  const redis =
    redisUrl && createRedis({ urls: redisUrl, log, registry, answerTimeoutMs: REDIS_TIMEOUT_MS });
  const socialId = toSocialId(id ?? "");
  const address = socialId && chain.addressesOf(socialId).address;
  if (address !== undefined) {
    const text = `the address of id ${id} is ${address}: compare it with the escrow program's`;
    report(good("ESCROW_PROGRAM_ID", text));
  } else if (id !== undefined) report(bad("--id", `expected ${SOCIAL_ID_EXPECTED}`));
  async function checkNetwork(): Promise<void> {
    const finding = await checkSocialNetwork(social.client, socialApiUrl);
    report(finding);
    if (finding.state !== "bad") report(checkCredit(await social.client.credit()));
  }
  const [programs] = await Promise.all([
    checkChain({ config, rpc: chain.rpc, report }),
    checkNetwork(),
    checkRedis(redis, redisUrl).then(report),
  ]);
  if (mints) await comparePlatform({ chain, redis, programs, address, report, mints });
  redis?.close();
  print(atFault.size > 0 ? `At fault: ${[...atFault].join(", ")}` : "Nothing is wrong.");
  return atFault.size > 0 ? 1 : 0;
}

function checkCredit(dollars: number | undefined): Finding {
  if (dollars === undefined)
    return good(
      "SOCIAL_API_TOKEN",
      "the network does not say how much credit is left: see its developer console",
    );
  const accounts = Math.max(0, Math.floor(dollars / DOLLARS_PER_ACCOUNT));
  const text = `the network's credit is $${dollars.toFixed(2)}, enough to look up ${accounts} accounts`;
  return accounts < FEW_ACCOUNTS
    ? poor("SOCIAL_API_TOKEN", `${text}: add credit in the network's developer console`)
    : good("SOCIAL_API_TOKEN", text);
}

async function checkRedis(redis: Redis | undefined, urls: readonly URL[] = []): Promise<Finding> {
  if (!redis) return good("REDIS_URL", "not set: right for one replica, wrong for several");
  const host = urls.map((url) => url.host).join();
  const deadline = addMs(monotonicNow(), REDIS_TIMEOUT_MS);
  let info: string | undefined;
  do info = await redis.run(REDIS_INFO, { probe: redisKeys.probe() });
  while (info === undefined && monotonicNow() < deadline && (await sleep(REDIS_RETRY_MS, true)));
  if (info === undefined) {
    const reason = redis.reason() || "it does not answer";
    const text = `${host} does not answer or accept writes (${reason}): ${remedyFor(redis.reason(), urls[0]!)}`;
    return bad("REDIS_URL", text);
  }
  const version = /^redis_version:(.*)\r$/m.exec(info)?.[1] ?? "of an unknown version";
  if (Number.parseInt(version) < LEAST_REDIS_VERSION) {
    return bad(
      "REDIS_URL",
      `${host} runs Redis ${version}: install version ${LEAST_REDIS_VERSION} or later`,
    );
  }
  if (/^maxmemory_policy:(?!noeviction\r)/m.test(info)) {
    return poor(
      "REDIS_URL",
      `${host} evicts keys when it is full: set maxmemory-policy to noeviction`,
    );
  }
  return good("REDIS_URL", `${host} runs Redis ${version} and accepts writes`);
}
