import { z } from "zod";
import { remedyOf } from "../observability/connection-error.ts";
import { isRefusal, type createConnection } from "./redis-connection.ts";
import { redisKeys } from "./redis-keys.ts";
import { scriptOverKeys } from "./script.ts";

/** Checks that Redis answers and accepts writes. */
const PROBE = scriptOverKeys({
  answer: z.literal(1),
  text: "for _, key in ipairs(KEYS) do redis.call('SET', key, '1', 'PX', 1000) end return 1",
});
/** How a node of a cluster refuses keys in different slots, or in slots that it does not have. */
const CLUSTER_REFUSAL = /^(CROSSSLOT|MOVED|ASK|CLUSTERDOWN|TRYAGAIN)\b/;

const IS_NO_CLUSTER =
  "several URLs must be nodes of one Redis Cluster, but these are not: set only one";

const NO_ADDRESS = "CLUSTER SLOTS names a node without its address";

/** Errors of SELECT. Redis then uses database 0, which may be another service's. */
const DATABASE_REFUSED = /\bDB index\b|\bselect\b/i;

/** What the operator should do about an error that Redis, or what is at its port, answers. */
const REMEDIES = [
  [/^(WRONGPASS|NOAUTH)\b/, "check the user and the password in REDIS_URL"],
  [
    /^NOPERM\b.*\bcluster\b/,
    "this is a node of a Redis Cluster: allow the user the command CLUSTER SLOTS",
  ],
  [/^NOPERM\b/, "allow the user the keys and the channels tributary:*"],
  [/^READONLY\b/, "this is a read-only replica: set REDIS_URL to the primary's URL"],
  [/^MISCONF\b/, "Redis cannot save its data: free space on its disk, or see its log"],
  [/^NOREPLICAS\b/, "Redis misses replicas: start them, or lower its min-replicas-to-write"],
  [/^CLUSTER SLOTS\b/, "set cluster-announce-ip on each node of the Redis Cluster"],
  [/^OOM\b/, "Redis is full: raise its maxmemory, and keep other services' keys elsewhere"],
  // How the client calls the H of HTTP.
  [/^Unknown RESP type 72\b/, "REDIS_URL leads to an HTTP server: check the host and the port"],
] as const;

/**
 * Returns what the operator should do about an error `reason`; an empty reason means that Redis has
 * not answered.
 */
export function remedyFor(reason: string, url: URL): string {
  const [, remedy] = REMEDIES.find(([pattern]) => pattern.test(reason)) ?? [];
  // A server without TLS waits for the rest of a command.
  const isSilent = reason === "" || /^ETIMEDOUT$|timeout/.test(reason);
  if (remedy === undefined && isSilent && url.protocol === "rediss:")
    return "check REDIS_URL, that Redis runs, and that this port uses TLS: without TLS use redis://";
  return remedy ?? remedyOf(reason, url) ?? "check REDIS_URL, and that Redis runs";
}

/** Returns what the operator should do about an outage, and how the outage affects this replica. */
export function describeOutage(reason: string, url: URL): string {
  return `${remedyFor(reason, url)}; until it answers, this replica shares no limits, caches or locks`;
}

export interface ProbeResult {
  /** Whether every master has answered as expected. */
  readonly isAnswering: boolean;
  /** Redis's error, if it refused the probe; or why the probe could not reach each master. */
  readonly refusal?: string | undefined;
  /** Why Redis can never be used with these URLs. */
  readonly problem?: string | undefined;
}

/**
 * Redis itself says whether it is a cluster, because managed clusters have one host name: every
 * node of a cluster refuses a script whose keys are in different slots.
 */
export async function probe(connection: ReturnType<typeof createConnection>): Promise<ProbeResult> {
  const isCluster = connection.isCluster();
  const calls = isCluster
    ? connection.keyOnEachMaster(redisKeys.probe).map((key) => [key])
    : [[redisKeys.probe(0), redisKeys.probe(1)]];
  const answers = await Promise.all(
    calls.map((keys) =>
      connection.evaluate(PROBE.text, PROBE.toArguments({ each: keys.map((key) => ({ key })) })),
    ),
  );
  const refusal = answers.find(isRefusal)?.message;
  if (!isCluster && refusal !== undefined && CLUSTER_REFUSAL.test(refusal)) {
    // Valkey 9 has numbered databases in a cluster, but the client cannot select them there.
    if (connection.database > 0)
      return {
        isAnswering: false,
        problem: `expected no database number for a cluster, got ${connection.database}: use database 0`,
      };
    connection.useCluster();
    return { isAnswering: false };
  }
  const isAnswering =
    calls.length > 0 && answers.every((answer) => PROBE.answer.safeParse(answer).success);
  const reason = refusal ?? (connection.hasUnknownNodes() ? NO_ADDRESS : undefined);
  return { isAnswering, refusal: reason, problem: findProblem(connection) };
}

function findProblem(connection: ReturnType<typeof createConnection>): string | undefined {
  const { database } = connection;
  if (database > 0 && DATABASE_REFUSED.test(connection.lastError()))
    return `Redis refuses the database ${database} (${connection.lastError()}): use one that it has`;
  return connection.isNoCluster() ? IS_NO_CLUSTER : undefined;
}
