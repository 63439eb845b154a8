import type { BudgetMetrics } from "./fairness/budget-metrics.ts";
import type { Health } from "./http/health.ts";
import type { Streams } from "./http/streams.ts";
import { COMMIT, VERSION } from "./observability/version.ts";
import type { createChainServices, createSocialServices } from "./services.ts";
import type { Redis } from "./store/redis.ts";

/** Of each list that strangers can make long. */
const MOST_LISTED = 100;

/** The body of `/status`. */
export type Status = Awaited<ReturnType<typeof describeReplica>>;

/**
 * Describes what this replica is doing. Has hosts, accounts' addresses and signatures, but no
 * secrets, and nothing of callers.
 */
export async function describeReplica(parts: {
  readonly chain: ReturnType<typeof createChainServices>;
  readonly social: ReturnType<typeof createSocialServices>;
  readonly budgetMetrics: BudgetMetrics;
  readonly redis: Redis | undefined;
  readonly streams: Streams;
  readonly health: Pick<Health, "describe">;
}) {
  const { chain, social, budgetMetrics, redis, streams, health } = parts;
  const { failures } = chain;
  return {
    at: new Date().toISOString(),
    version: VERSION,
    commit: COMMIT,
    upSeconds: Math.floor(process.uptime()),
    readyz: health.describe(),
    feePayer: chain.metrics.describe(),
    endpoints: chain.rpc.describe(),
    network: social.describe(),
    collects: { ...chain.flights.describe(MOST_LISTED), ...failures.describe(MOST_LISTED) },
    budgets: { left: await budgetMetrics.describe(), chainCalls: chain.chainCallPlan.describe() },
    replicas: {
      count: chain.replicas.count(),
      redis: redis && (redis.isUp() ? "up" : "down"),
    },
    caches: {
      accounts: social.accountLookup.describeCache(),
      histories: chain.history.describeCache(),
      floors: chain.floors.describeCache(),
      failures: failures.describeCache(),
    },
    streams: streams.describe(),
  };
}
