import { afterEach, beforeEach, expect, it } from "vitest";
import type { Redis } from "../../src/store/redis.ts";
import { createSandboxCollector } from "../support/collector-on-sandbox.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { hold, isMethod, startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

let server: RedisServer;
let redis: Redis;
let sandbox: TestSandbox;

describeWithRedis("two replicas on a slow chain", () => {
  eachWithRedis((newServer, newRedis) => {
    server = newServer;
    redis = newRedis;
  });
  beforeEach(async () => {
    sandbox = await startTestSandbox();
  });
  afterEach(() => sandbox.close());

  it("do not take the lock of an account from each other, and share one transaction", async () => {
    const env = { RPC_TIMEOUT_MS: "600000" };
    const first = createSandboxCollector(sandbox, { redis, env });
    const second = createSandboxCollector(sandbox, { redis, env, rpcs: [sandbox.secondRpc] });
    const key = `tributary:v3:claim:{${first.feePayer}:${sandbox.account("creator").address}}`;
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const outcome = first.collect("creator");
    await expect.poll(() => server.command("EXISTS", key)).toBe(1);
    const secondOutcome = second.collect("creator");
    await expect.poll(() => server.command("HGET", key, "asked")).toBe("1");
    // Only a renewal shortens this time, so the test need not wait until a lock without renewals
    // expires.
    await server.command("PEXPIRE", key, 3_600_000);
    await expect.poll(() => server.command("PTTL", key)).toBeLessThanOrEqual(15_000);
    release();
    expect(await outcome).toMatchObject({ kind: "collected", collected: 3_100_000_000n });
    expect(await secondOutcome).toEqual(await outcome);
    expect(sandbox.secondRpc.calls.filter(isMethod("simulateTransaction"))).toEqual([]);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});
