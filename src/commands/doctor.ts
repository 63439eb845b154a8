import { setTimeout as sleep } from "node:timers/promises";
import { Registry } from "@prometheus-io/client";
import { z } from "zod";
import { FEW_COLLECTS } from "../chain/collect/fee-payer.ts";
import { formatSol, toLamports } from "../chain/lamports.ts";
import { BASE_FEE_LAMPORTS } from "../chain/priority-fee.ts";
import type { Account } from "../chain/rpc/read-accounts.ts";
import { createRpc, type Rpc } from "../chain/rpc/rpc-client.ts";
import type { Config } from "../config.ts";
import { createLogger } from "../observability/log.ts";
import { createWarnings } from "../observability/warnings.ts";
import { createSocialClient } from "../social/api-client.ts";
import { createCallQuota } from "../social/call-quota.ts";
import { createCircuitBreaker } from "../social/circuit-breaker.ts";
import { isBadRequest, SocialError } from "../social/social-error.ts";
import { createCallUpstream } from "../upstream/http.ts";
import { createRedis } from "../upstream/redis.ts";
import { checkEndpoints } from "./check-endpoints.ts";
import { bad, good, poor, type Finding } from "./finding.ts";

const REDIS_INFO = {
  text: "redis.call('SET', KEYS[1], '1', 'PX', 1000) return redis.call('INFO')",
  answer: z.string(),
};
const LEAST_REDIS_VERSION = 7;
/** Longer than the service waits: a slow connection from this machine does not make the URL wrong. */
const REDIS_TIMEOUT_MS = 5_000;
const REDIS_RETRY_MS = 200;

/**
 * Checks a configuration against its upstreams, without serving and without spending anything. Findings are in
 * the order of the checks.
 */
export async function examine(config: Config): Promise<Finding[]> {
  const needs = { log: createLogger("silent"), callUpstream: createCallUpstream(new Registry()) };
  const rpc = createRpc({ ...needs, urls: config.secrets.rpcUrls, timeoutMs: config.chain.rpcTimeoutMs });
  const findings = await Promise.all([
    checkSocialNetwork(config, needs),
    checkEndpoints(config, needs),
    checkAccounts(config, rpc),
    checkRedis(config),
  ]);
  return findings.flat();
}

type Needs = Pick<Parameters<typeof createRpc>[0], "log" | "callUpstream">;

/** Asks for an invalid name, because the network charges only for accounts it finds. */
async function checkSocialNetwork({ social, secrets }: Config, needs: Needs): Promise<Finding[]> {
  const client = createSocialClient({
    ...needs,
    ...social,
    token: secrets.socialApiToken,
    circuitBreaker: createCircuitBreaker({ ...needs, timeoutMs: social.timeoutMs }),
    quota: createCallQuota({ ...social, redis: undefined }),
    warnings: createWarnings(needs.log),
  });
  const error = await client.findByHandles(["-"]).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const accepted = good("SOCIAL_API_TOKEN", `${social.apiUrl.host} accepts it`);
  if (isBadRequest(error)) return [accepted];
  if (!(error instanceof SocialError)) return [notTheApi(social.apiUrl)];
  const { failure } = error;
  if (failure.kind === "rate-limited") {
    const text = `the network allows no calls for ${failure.retryAfterSeconds} s: find what else uses this token`;
    return [poor("SOCIAL_API_TOKEN", text)];
  }
  if (failure.kind === "unreachable" || failure.kind === "timeout" || failure.kind === "lookup-timeout") {
    const text = `${social.apiUrl.host} does not answer: check the URL, and that this machine can connect to it`;
    return [bad("SOCIAL_API_URL", text)];
  }
  if (failure.kind !== "refused") return [notTheApi(social.apiUrl)];
  if (failure.status === 401) {
    const text = `${social.apiUrl.host} refuses it: create a new app-only bearer token in the network's developer console`;
    return [bad("SOCIAL_API_TOKEN", text)];
  }
  if (failure.status === 402 || failure.status === 403 || failure.status === 429) {
    const text = `${social.apiUrl.host} refuses its app (${failure.status}): add credit or access in the network's developer console`;
    return [bad("SOCIAL_API_TOKEN", text)];
  }
  return [notTheApi(social.apiUrl, ` (${failure.status})`)];
}

function notTheApi({ host }: URL, details = ""): Finding {
  return bad("SOCIAL_API_URL", `${host} does not answer like the network's API v2${details}: check the URL`);
}

/** Checks the programs and the fee payer's balance. */
async function checkAccounts({ chain, collect, secrets }: Config, rpc: Rpc): Promise<Finding[]> {
  const programs = [
    ["ESCROW_PROGRAM_ID", chain.escrowProgramId],
    ["LAUNCHPAD_PROGRAM_ID", chain.launchpadProgramId],
    ["LAUNCHPAD_AMM_PROGRAM_ID", chain.launchpadAmmProgramId],
  ] as const;
  const feePayer = secrets.feePayer.publicKey.toBase58();
  let accounts: (Account | undefined)[];
  try {
    const addresses = [...programs.map(([, id]) => id), feePayer];
    accounts = (await rpc.getAccounts(addresses.map((address) => [address]))).flat();
  } catch {
    return [bad("SOLANA_RPC_URL", "no endpoint answers, so the programs and the fee payer are not checked")];
  }
  const balance = accounts.at(-1)?.lamports ?? toLamports(0);
  const collects = balance / (BASE_FEE_LAMPORTS + collect.maxPriorityFee);
  const holds = `${feePayer} holds ${formatSol(balance)} SOL, enough for ${collects} collects at the highest fee`;
  const state = collects === 0n ? bad : collects < FEW_COLLECTS ? poor : good;
  return [
    ...programs.map(([name, id], i) =>
      accounts[i]?.executable === true
        ? good(name, `${id} is deployed`)
        : bad(name, `there is no program ${id}: check the id, and the cluster of SOLANA_RPC_URL`),
    ),
    state("FEE_PAYER_KEYPAIR", state === good ? holds : `${holds}: send SOL to it`),
  ];
}

/** Checks that Redis answers and accepts writes, its version, and that it evicts no keys. */
async function checkRedis({ secrets }: Config): Promise<Finding[]> {
  const { redisUrls } = secrets;
  if (!redisUrls) return [good("REDIS_URL", "not set: right for one replica, wrong for several")];
  const host = redisUrls.map((url) => url.host).join();
  let reason = "";
  const log = createLogger("warn", {
    write: (line) => {
      reason = (JSON.parse(line) as { reason?: string }).reason ?? reason;
    },
  });
  const redis = createRedis({
    urls: redisUrls,
    log,
    registry: new Registry(),
    answerTimeoutMs: REDIS_TIMEOUT_MS,
  });
  const problem = await redis.ready;
  if (problem !== undefined) return [bad("REDIS_URL", problem)];
  let info = await redis.run(REDIS_INFO, ["v2:doctor"], []);
  const deadline = performance.now() + REDIS_TIMEOUT_MS;
  while (info === undefined && performance.now() < deadline) {
    await sleep(REDIS_RETRY_MS);
    info = await redis.run(REDIS_INFO, ["v2:doctor"], []);
  }
  redis.close();
  if (info === undefined) {
    const text = `${host} does not answer or accept writes (${reason}): check the URL, its password, and that Redis runs`;
    return [bad("REDIS_URL", text)];
  }
  const version = /^redis_version:(.*)\r$/m.exec(info)?.[1] ?? "";
  if (Number.parseInt(version) < LEAST_REDIS_VERSION) {
    return [
      bad("REDIS_URL", `${host} runs Redis ${version}: install version ${LEAST_REDIS_VERSION} or later`),
    ];
  }
  const policy = /^maxmemory_policy:(.*)\r$/m.exec(info)?.[1];
  if (policy !== undefined && policy !== "noeviction") {
    return [poor("REDIS_URL", `${host} evicts keys when it is full: set maxmemory-policy to noeviction`)];
  }
  return [good("REDIS_URL", `${host} runs Redis ${version} and accepts writes`)];
}
