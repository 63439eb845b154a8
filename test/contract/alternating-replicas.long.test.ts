import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startReplicas, type Replicas } from "../support/replicas.ts";
import type { TestSandbox } from "../support/sandbox.ts";

let redis: RedisServer;
let replicas: Replicas;
let sandbox: TestSandbox;

describeWithRedis("two replicas", () => {
  beforeAll(async () => {
    redis = await startRedis();
    replicas = await startReplicas(redis.url);
    sandbox = replicas.sandbox;
  });
  afterAll(async () => {
    await replicas.close();
    await redis.stop();
  });

  it("alternate in collecting fees that arrive after a collect", async () => {
    const { id, handle, creatorVault } = sandbox.account("creator");
    for (let i = 0; i < 4; i++) {
      expect((await replicas.at(i).collect(id)).body).toMatchObject({
        success: true,
        collected: i === 0 ? "3.1000" : "0.5000",
      });
      sandbox.chain.setBalance(creatorVault, sandbox.chain.balance(creatorVault) + 500_000_000n);
    }
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(4);
  });
});
