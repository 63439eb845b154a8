import { Registry } from "@prometheus-io/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createFeeBudget } from "../../src/chain/collect/fee-budget.ts";
import { createFloors } from "../../src/chain/balances/floors.ts";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";
import { toLamports } from "../../src/chain/primitives/lamports.ts";
import { createRateLimit } from "../../src/http/rate-limit/rate-limit.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createAccountCache, type CachedAccount } from "../../src/social/account-cache.ts";
import { NO_PROFILE } from "../../src/social/profile.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { SocialError } from "../../src/social/social-error.ts";
import { createRedis, type Redis } from "../../src/store/redis.ts";
import { describeWithRedis, isBack } from "../support/describe-with-redis.ts";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster.ts";

const socialApiUrl = new URL("http://network");

describeWithRedis("on a Redis Cluster, two replicas", () => {
  let cluster: RedisCluster;
  let replicas: Redis[];
  beforeAll(async () => {
    cluster = await startRedisCluster();
    const { urls } = cluster;
    const connect = () =>
      createRedis({
        urls,
        log: createLogger("silent"),
        registry: new Registry(),
        answerTimeoutMs: 600_000,
      });
    replicas = [connect(), connect()];
    await Promise.all(replicas.map(isBack));
  });
  afterAll(async () => {
    for (const redis of replicas) redis.close();
    await cluster.stop();
  });

  it("let exactly 20 of 100 concurrent requests of each of 30 callers pass", async () => {
    const limits = replicas.map((redis) =>
      createRateLimit({ max: 20, windowSeconds: 3_600 }, redis),
    );
    const callers = Array.from({ length: 30 }, (_, i) => `192.0.2.${i}`);
    const passed = await Promise.all(
      callers.map(async (caller) => {
        const verdicts = await Promise.all(
          Array.from({ length: 100 }, async (_, i) => limits[i % 2]!(caller, 1)),
        );
        return verdicts.filter(({ refusal }) => !refusal).length;
      }),
    );
    expect(passed).toEqual(callers.map(() => 20));
    // The callers are spread over all nodes.
    for (const master of cluster.masters)
      expect(await master.command("KEYS", "tributary:v2:limit:*")).not.toEqual([]);
  });

  it("share 100 accounts of one lookup, which are all on one node", async () => {
    const [one, other] = replicas.map((redis) =>
      createAccountCache({ socialApiUrl, socialCacheSeconds: 300, redis }),
    );
    const accounts = new Map<string, CachedAccount>(
      Array.from({ length: 100 }, (_, i) => [
        `@handle${i}`,
        i % 10
          ? { id: String(i), handle: `Handle${i}`, profile: NO_PROFILE }
          : new SocialError({ kind: "not-found" }),
      ]),
    );
    const keys = [...accounts.keys()];
    one!.store(accounts);
    await expect.poll(async () => (await cluster.keys("tributary:v3:account:*")).length).toBe(100);
    await other!.fetchFromRedis(keys);
    expect(keys.map(other!.get)).toEqual([...accounts.values()]);
  });

  it("share the fee budgets of different fee payers", async () => {
    for (const feePayer of ["payer1", "payer2", "payer3"]) {
      const budgets = replicas.map((redis) =>
        createFeeBudget({
          feePayer,
          feeBudgetLamportsPerHour: toLamports(120_000),
          maxPriorityFeeLamports: toLamports(0),
          maxRentLamports: toLamports(0),
          redis,
          metrics: createBudgetMetrics(new Registry()),
        }),
      );
      const reservations = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          budgets[i % 2]!.reserve(
            { fee: toLamports(5_000), rent: toLamports(0), moved: toLamports(10 ** 9) },
            new Map([[`caller${i}`, undefined]]),
          ),
        ),
      );
      expect(reservations.filter((each) => typeof each === "function")).toHaveLength(4);
    }
  });

  it("share the budgets for reading accounts of different networks", async () => {
    for (const host of ["network1", "network2", "network3"]) {
      const needs = {
        socialReadsPerHour: 66,
        socialApiUrl: new URL(`http://${host}`),
      };
      const budgets = replicas.map((redis) => createReadBudget({ ...needs, redis }));
      const admissions = await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          const { paid } = await budgets[i % 2]!(1, `2001:${i}::/48`);
          return paid;
        }),
      );
      // Eleven reads fit at once.
      expect(admissions.filter((paid) => paid === 1)).toHaveLength(11);
    }
  });

  it("tell each other the slots in which transactions landed", async () => {
    const floors = replicas.map((redis) => createFloors({ feePayer: "payer", redis }));
    await expect
      .poll(() => {
        // The other may not have subscribed yet.
        floors[0]!.announce("address", 42);
        return floors[1]!.landedSlotOf("address");
      })
      .toBe(42);
  });
});
