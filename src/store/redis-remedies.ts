import { remedyOf } from "../observability/connection-error.ts";

/** Errors of SELECT. Redis then uses database 0, which may be another service's. */
export const DATABASE_REFUSED = /\bDB index\b|\bselect\b/i;
/** How a node of a cluster refuses keys in different slots, or in slots that it does not have. */
export const CLUSTER_REFUSAL = /^(CROSSSLOT|MOVED|ASK|CLUSTERDOWN|TRYAGAIN)\b/;
/** Why a cluster's master cannot be reached. */
export const NO_ADDRESS = "CLUSTER SLOTS names a node without its address";

/** What the operator should do about an error that Redis, or what is at its port, answers. */
const REMEDIES = [
  [/^(WRONGPASS|NOAUTH)\b/, "check the user and the password in REDIS_URL"],
  [
    /^NOPERM\b.*\bcluster\b/,
    "this is a node of a Redis Cluster: allow the user the command CLUSTER SLOTS",
  ],
  [DATABASE_REFUSED, "use a database that Redis has and allows; a cluster has only database 0"],
  [CLUSTER_REFUSAL, "this is a node of a Redis Cluster: use database 0"],
  [/cluster support disabled/, "several URLs must be nodes of one Redis Cluster: set only one"],
  [/^NOPERM\b|\bACL failure\b|\bchannel\b/, "allow the user the keys and the channels tributary:*"],
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
