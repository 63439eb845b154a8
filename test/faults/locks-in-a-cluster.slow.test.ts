import { afterAll, beforeAll, expect, it } from "vitest";
import { atOnce } from "../support/client.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster.ts";
import { startReplicas, type Replicas } from "../support/replicas.ts";
import { hold, isMethod } from "../support/sandbox.ts";

/** So many that each node of the cluster has some of their locks. */
const HANDLES = Array.from({ length: 12 }, (_, i) => `artist${String(i + 1).padStart(3, "0")}`);

describeWithRedis("in a Redis Cluster, the lock of an account", () => {
  let cluster: RedisCluster;
  let replicas: Replicas;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    replicas = await startReplicas(cluster.url);
  });
  afterAll(async () => {
    await replicas.close();
    await cluster.stop();
  });

  it("makes two gateways send one transaction for its concurrent collects, and share the result", async () => {
    const { sandbox } = replicas;
    const accounts = HANDLES.map(sandbox.account);
    for (const { creatorVault } of accounts)
      sandbox.chain.setBalance(creatorVault, sandbox.chain.rentExemptMinimum(0) + 3_100_000_000n);

    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const collects = accounts.map(({ id }) => atOnce(4, (i) => replicas.at(i).collect(id)));
    await expect.poll(() => sandbox.rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    await replicas.takeUp();
    release();
    for (const [i, answers] of (await Promise.all(collects)).entries()) {
      expect(answers[0]!.body).toMatchObject({ success: true, collected: "3.1000" });
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
      expect(sandbox.landedCollectsOf(HANDLES[i]!)).toHaveLength(1);
    }
  });
});
