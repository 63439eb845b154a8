import { expect, it } from "vitest";
import { createRateLimit } from "../../../src/http/rate-limit/rate-limit.ts";
import { createRedisStore } from "../../../src/http/rate-limit/redis-store.ts";
import type { Redis } from "../../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";

let server: RedisServer;
let redis: Redis;

describeWithRedis("the rate limit in Redis", () => {
  eachWithRedis((...started) => {
    [server, redis] = started;
  });

  it("lets exactly 20 of 1,000 concurrent requests pass, and reports the remaining requests", async () => {
    const rateLimit = createRateLimit({ max: 20, windowSeconds: 60 }, redis);
    const verdicts = await Promise.all(Array.from({ length: 1000 }, async () => rateLimit("a", 1)));
    const passed = verdicts.filter(({ refusal }) => !refusal);
    expect(passed.map(({ rateLimitHeader }) => Number(/r=(\d+)/.exec(rateLimitHeader)![1]))).toEqual(
      Array.from({ length: 20 }, (_, i) => 19 - i),
    );
    const { refusal, rateLimitHeader, policyHeader } = verdicts.at(-1)!;
    expect(policyHeader).toBe('"address";q=20;w=60');
    expect(rateLimitHeader).toBe(`"address";r=0;t=${refusal!.retryAfterSeconds}`);
    expect(refusal!.retryAfterSeconds).toBeGreaterThan(30);
    expect((await rateLimit("b", 1)).refusal).toBeUndefined();
  });

  it("lets at most `max` requests pass in any window", async () => {
    const limit = { max: 3, windowMs: 30 };
    const take = createRedisStore(redis, limit);
    const passedAt: number[] = [];
    while (passedAt.length < 40) {
      const taken = await take("a", 1);
      if (taken!.counted < limit.max) passedAt.push(taken!.at);
      else expect(taken!.waitMs).toBeGreaterThan(0);
    }
    for (let i = limit.max; i < passedAt.length; i++) {
      expect(passedAt[i]! - passedAt[i - limit.max]!).toBeGreaterThanOrEqual(limit.windowMs);
    }
  });

  it("replaces a preliminary cost of one with the full cost, or refuses the request", async () => {
    const rateLimit = createRateLimit({ max: 20, windowSeconds: 60 }, redis);
    const passes = async (...request: Parameters<typeof rateLimit>) =>
      (await rateLimit(...request)).refusal === undefined;
    const { at } = await rateLimit("a", 1);
    expect(await passes("a", 20, at)).toBe(true);
    expect(await passes("a", 1)).toBe(false);

    const other = await rateLimit("b", 1);
    expect(await passes("b", 15)).toBe(true);
    expect(await passes("b", 6, other.at)).toBe(false);
    expect(await passes("b", 5)).toBe(true);
    expect(await passes("b", 1)).toBe(false);
    expect((await rateLimit("c", 21)).refusal!.retryAfterSeconds).toBe(60);
  });

  it("keeps a caller's list for one window, and stores nothing for a caller without admitted requests", async () => {
    const rateLimit = createRateLimit({ max: 20, windowSeconds: 60 }, redis);
    await rateLimit("a", 20);
    const ttl = await server.command("PTTL", "tributary:v2:limit:a");
    await rateLimit("a", 1);
    expect(ttl).toBeLessThanOrEqual(60_001);
    expect(await server.command("PTTL", "tributary:v2:limit:a")).toBeLessThanOrEqual(ttl);
    expect(await server.command("LLEN", "tributary:v2:limit:a")).toBe(20);
    await rateLimit("b", 21);
    expect(await server.command("EXISTS", "tributary:v2:limit:b")).toBe(0);
  });

  it("applies per replica during a Redis outage", async () => {
    const limits = [1, 2].map(() => createRateLimit({ max: 20, windowSeconds: 60 }, redis));
    await server.stop();
    const verdicts = await Promise.all(
      limits.flatMap((rateLimit) => Array.from({ length: 50 }, async () => rateLimit("a", 1))),
    );
    expect(verdicts.filter(({ refusal }) => !refusal)).toHaveLength(40);
  });
});
