import { z } from "zod";
import { isRefusal, type createConnection } from "./redis-connection.ts";
import { redisKeys } from "./redis-keys.ts";
import { script } from "./script.ts";

/**
 * Checks that Redis answers and accepts writes. Returns `INFO cluster`, or an empty string if INFO
 * is not allowed.
 */
const PROBE = script({
  keys: ["probe"],
  answer: z.string(),
  text: `
redis.call('SET', probe, '1', 'PX', 1000)
local info = redis.pcall('INFO', 'cluster')
return type(info) == 'string' and info or ''
`,
});

const IS_CLUSTER =
  "this is a node of a Redis Cluster: list the URLs of several nodes, separated by commas";
const IS_NO_CLUSTER =
  "several URLs must be nodes of one Redis Cluster, but these are not: set only one";

/** Errors of SELECT. Redis then uses database 0, which may be another service's. */
const DATABASE_REFUSED = /\bDB index\b|\bselect\b/i;

/**
 * Returns what the operator should do about an error `reason`; an empty reason means that Redis has
 * not answered.
 */
export function remedyFor(reason: string, { protocol }: URL): string {
  if (/^(WRONGPASS|NOAUTH)\b/.test(reason)) return "check the user and the password in REDIS_URL";
  if (reason.startsWith("NOPERM")) return "allow the user the keys and the channels tributary:*";
  if (protocol === "rediss:" && (reason === "" || !/^[A-Z]+ /.test(reason)))
    return "check REDIS_URL, that Redis runs, and that this port uses TLS: without TLS use redis://";
  return "check REDIS_URL, and that Redis runs";
}

/** Returns what the operator should do about an outage, and how the outage affects this replica. */
export function describeOutage(reason: string, url: URL): string {
  return `${remedyFor(reason, url)}; until it answers, this replica shares no limits, caches or locks`;
}

/**
 * `isAnswering`: whether every master has answered as expected. `refusal`: Redis's error, if it
 * refused the probe. `problem`: why Redis can never be used with these URLs.
 */
export async function probe(connection: ReturnType<typeof createConnection>) {
  const keys = connection.keyOnEachMaster(redisKeys.probe);
  const answers = await Promise.all(
    keys.map((probe) => connection.evaluate(PROBE.text, PROBE.toArguments({ probe }))),
  );
  const refusal = answers.find(isRefusal)?.message;
  const isAnswering =
    keys.length > 0 && answers.every((answer) => PROBE.answer.safeParse(answer).success);
  return { isAnswering, refusal, problem: findProblem() };

  function findProblem(): string | undefined {
    const { database } = connection;
    if (database > 0 && DATABASE_REFUSED.test(connection.lastError()))
      return `Redis refuses the database ${database} (${connection.lastError()}): use one that it has`;
    if (connection.isCluster) return connection.isNoCluster() ? IS_NO_CLUSTER : undefined;
    const isCluster =
      /^(MOVED|ASK)\b/.test(refusal ?? "") || /^cluster_enabled:1/m.test(String(answers[0]));
    return isCluster ? IS_CLUSTER : undefined;
  }
}
