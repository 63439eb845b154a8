import { afterEach, beforeEach, expect, it } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { runProduction } from "../support/production.ts";
import { runMain, type Program } from "../support/program.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

describeWithRedis("a mistake in REDIS_URL", () => {
  let redis: RedisServer;
  let sandbox: TestSandbox;
  beforeEach(async () => {
    [redis, sandbox] = await Promise.all([startRedis(), startTestSandbox()]);
  });
  afterEach(async () => {
    await sandbox.close();
    await redis.stop();
  });

  const warningsOf = (program: Program) =>
    [...program.output().matchAll(/^\{"level":40.*$/gm)]
      .map(([line]) => JSON.parse(line) as { msg: string; reason?: string })
      .filter(({ reason }) => reason !== undefined);

  it("that names a database which Redis refuses stops the start", async () => {
    // Repeats until Redis answers within the second that the start waits for it.
    for (;;) {
      const program = runMain({ ...sandbox.env, PORT: "0", REDIS_URL: `${redis.url}/99` });
      await expect.poll(() => /listening|cannot start/.test(program.output())).toBe(true);
      if (program.output().includes("listening")) continue;
      expect(await program.exitCode()).toBe(1);
      expect(program.output()).toContain(
        "Tributary cannot start: REDIS_URL: Redis refuses the database 99",
      );
      break;
    }
  });

  it.each<[string, () => Promise<string> | string, RegExp, string]>([
    [
      "a wrong password",
      async () => {
        await redis.command("CONFIG", "SET", "requirepass", "the-password");
        return redis.url.replace("//", "//:not-the-password@");
      },
      /^(WRONGPASS|NOAUTH) /,
      "check the user and the password",
    ],
    [
      "TLS at a port without it",
      () => redis.url.replace("redis:", "rediss:"),
      /\S/,
      "without TLS use redis://",
    ],
    [
      "an HTTP server",
      () => sandbox.rpc.url.replace("http:", "redis:"),
      /^Unknown RESP type/,
      "leads to an HTTP server: check the host and the port",
    ],
    [
      "a read-only replica",
      async () => {
        await redis.command("REPLICAOF", "127.0.0.1", 1);
        return redis.url;
      },
      /^READONLY /,
      "a read-only replica: set REDIS_URL to the primary's URL",
    ],
    [
      "a full Redis",
      async () => {
        await redis.command("CONFIG", "SET", "maxmemory", 1);
        return redis.url;
      },
      /^OOM /,
      "Redis is full: raise its maxmemory",
    ],
  ])("is one warning with its cause and remedy: %s", async (_name, urlOf, reason, remedy) => {
    const { program, client } = await runProduction(sandbox, { REDIS_URL: await urlOf() });
    const warnings = warningsOf(program);
    expect(warnings).toEqual([
      expect.objectContaining({
        reason: expect.stringMatching(reason),
        msg: expect.stringContaining(remedy),
      }),
    ]);
    expect((await client.request("/readyz")).body.warnings).toEqual([warnings[0]!.msg]);
    expect(program.output()).not.toContain("channels");
  });
});
