import { respondJson } from "../contract/http-messages.ts";
import type { Failures } from "../chain/balances/failures.ts";
import type { Floors } from "../chain/balances/floors.ts";
import type { Flights } from "../chain/collect/flights.ts";
import type { History } from "../chain/history/history.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";
import type { BudgetMetrics } from "../fairness/budget-metrics.ts";
import type { ChainCallPlan } from "../fairness/chain-call-plan.ts";
import type { AccountLookup } from "../social/account-lookup.ts";
import type { CallQuota } from "../social/call-quota.ts";
import type { CircuitBreaker } from "../social/circuit-breaker.ts";
import type { Redis } from "../store/redis.ts";
import type { ReplicaCount } from "../store/replica-count.ts";
import type { Streams } from "./streams.ts";

/** Of each list that strangers can make long. */
const MOST_LISTED = 100;

export interface StatusNeeds {
  readonly rpc: Pick<Rpc, "describe">;
  readonly network: {
    describe(): ReturnType<CircuitBreaker["describe"]> & {
      readonly host: string;
      readonly quota: ReturnType<CallQuota["describe"]>;
      readonly waiting: number;
    };
  };
  readonly flights: Pick<Flights, "describe">;
  readonly failures: Pick<Failures, "describe" | "describeCache">;
  readonly budgetMetrics: Pick<BudgetMetrics, "describe">;
  readonly chainCallPlan: Pick<ChainCallPlan, "describe">;
  readonly replicas: Pick<ReplicaCount, "count">;
  readonly redis: Pick<Redis, "isUp"> | undefined;
  readonly accountLookup: Pick<AccountLookup, "describeCache">;
  readonly history: Pick<History, "describeCache">;
  readonly floors: Pick<Floors, "describeCache">;
  readonly streams: Pick<Streams, "describe">;
}

/**
 * Describes what this replica is doing. Has hosts, accounts' addresses and signatures, but no
 * secrets, and nothing of callers.
 */
function createDescribe(needs: StatusNeeds) {
  const { redis, failures } = needs;
  return async () => {
    const budgets = await needs.budgetMetrics.describe();
    return {
      at: new Date().toISOString(),
      endpoints: needs.rpc.describe(),
      network: needs.network.describe(),
      collects: { ...needs.flights.describe(MOST_LISTED), ...failures.describe(MOST_LISTED) },
      budgets: { left: budgets, chainCalls: needs.chainCallPlan.describe() },
      replicas: { count: needs.replicas.count(), redis: redis && (redis.isUp() ? "up" : "down") },
      caches: {
        accounts: needs.accountLookup.describeCache(),
        histories: needs.history.describeCache(),
        floors: needs.floors.describeCache(),
        failures: failures.describeCache(),
      },
      streams: needs.streams.describe(),
    };
  };
}

/** `/status`, as JSON. */
export function createStatusHandler(needs: StatusNeeds): () => Promise<Response> {
  const describe = createDescribe(needs);
  return async () => respondJson(200, await describe());
}
