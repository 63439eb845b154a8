import { expect, it, vi } from "vitest";
import { createReplicaCount } from "../../src/store/replica-count.ts";
import { describeWithRedis, eachWithRedis, redis, server } from "../support/describe-with-redis.ts";

const KEY = "tributary:v2:replicas";

it("without Redis is one", () => {
  expect(createReplicaCount(undefined).count()).toBe(1);
});

describeWithRedis("the number of replicas", () => {
  eachWithRedis();

  it("is four until Redis has answered, and then what Redis knows", async () => {
    const first = createReplicaCount(redis);
    expect(first.count()).toBe(4);
    await vi.waitFor(() => {
      expect(first.count()).toBe(1);
    });
    const second = createReplicaCount(redis);
    await vi.waitFor(() => {
      expect(second.count()).toBe(2);
    });
    first.stop();
    second.stop();
  });

  it("leaves out replicas that have ended, and announcements of a clock that was ahead", async () => {
    await server.command("ZADD", KEY, String(Date.now() - 16_000), "ended");
    await server.command("ZADD", KEY, String(Date.now() + 3_600_000), "ahead");
    const { count, stop } = createReplicaCount(redis);
    await vi.waitFor(() => {
      expect(count()).toBe(1);
    });
    expect(await server.command("PTTL", KEY)).toBeLessThanOrEqual(15_000);
    stop();
  });
});
