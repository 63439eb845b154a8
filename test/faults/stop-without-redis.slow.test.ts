import { afterEach, beforeEach, expect, it } from "vitest";
import { createClient } from "../support/client.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { runMain, startProgram, type Program } from "../support/program.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox, isLook } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

describeWithRedis("a replica that is stopped while Redis is frozen", () => {
  let redis: RedisServer;
  let sandbox: TestSandbox;
  beforeEach(async () => {
    redis = await startRedis();
    sandbox = await startTestSandbox();
  });
  afterEach(async () => {
    await sandbox.close();
    await redis.stop();
  });

  /** Starts a replica as a process, or with `runMain` in this one. */
  async function start(run: typeof runMain | typeof startProgram) {
    const program: Program = run({
      ...sandbox.env,
      ...AMPLE_DEADLINES,
      PORT: "0",
      REDIS_URL: redis.url,
      TRUST_PROXY: "127.0.0.1",
    });
    const client = createClient(await program.address(/"url":"(http[^"]+)"/));
    const redisIs = (up: number) =>
      expect
        .poll(async () => (await client.request("/metrics")).body)
        .toContain(`tributary_redis_up ${up}\n`);
    await redisIs(1);
    return { program, client, redisIs };
  }

  /** Starts a replica and a collect that lands after Redis has frozen; then stops the replica. */
  async function stopAfterCollect(run: typeof runMain | typeof startProgram) {
    const { program, client, redisIs } = await start(run);
    const { handle, id } = sandbox.account("creator");
    const lift = sandbox.rpc.faults.add({ when: isLook, then: "reset" });
    const collect = client.collect(id);
    await expect.poll(() => sandbox.landedCollectsOf(handle)).toHaveLength(1);
    redis.freeze();
    await client.lookup(handle);
    await redisIs(0);
    lift();
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
    program.stop();
    await expect.poll(() => fetch(client.url).catch(() => "closed")).toBe("closed");
    return { program, id, handle };
  }
  const UNWRITTEN = /"level":50,.*"outcomes":1,.*exiting before Redis has the outcomes/;

  it("releases the lock of a landed collect when Redis answers again, and exits with code 0", async () => {
    const { program, id, handle } = await stopAfterCollect(startProgram);
    redis.thaw();
    expect(await program.exitCode()).toBe(0);
    expect(program.output()).not.toMatch(UNWRITTEN);
    // A lock that still held the transaction would make the next replica report its success again.
    const next = await start(runMain);
    expect((await next.client.collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("exits with code 1 when Redis stays frozen, and logs that it could not write the outcome", async () => {
    const { program } = await stopAfterCollect(runMain);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toMatch(UNWRITTEN);
  });
});
