import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer as createPlainServer, type AddressInfo } from "node:net";
import { createServer } from "node:tls";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { createCertificate } from "../support/certificate.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import { runProduction } from "../support/production.ts";
import { runMain, type Program } from "../support/program.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

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
        "Tributary cannot start:\n  - REDIS_URL: Redis refuses the database 99",
      );
      break;
    }
  });

  it("that names a numbered database of a cluster stops the start", async () => {
    // Redis has none, so this is what Valkey 9 would answer.
    const server = createPlainServer((socket) => {
      socket.on("data", (data) => {
        for (const [, name] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g))
          socket.write(
            /^eval/i.test(name!)
              ? "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
              : "+OK\r\n",
          );
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const REDIS_URL = `redis://127.0.0.1:${(server.address() as AddressInfo).port}/2`;
    const program = runMain({ ...sandbox.env, PORT: "0", REDIS_URL });
    await expect.poll(() => /Redis is not used|cannot start/.test(program.output())).toBe(true);
    expect(program.output()).toContain(
      "REDIS_URL: expected no database number for a cluster, got 2: use database 0",
    );
  });

  it.each<[string, () => Promise<string> | string, RegExp, string]>([
    [
      "an unknown authority of its certificate",
      async () => {
        const server = createServer(createCertificate()).listen(0, "127.0.0.1");
        await once(server, "listening");
        onTestFinished(() => void server.close());
        return `rediss://127.0.0.1:${(server.address() as AddressInfo).port}`;
      },
      /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
      "authority is not trusted: name that in NODE_EXTRA_CA_CERTS",
    ],
    [
      "a Redis that cannot save",
      async () => {
        const folder = temporaryFolder();
        const server = await startRedis(() => ["--dir", folder, "--save", "3600 1"]);
        onTestFinished(() => server.stop());
        rmSync(folder, { recursive: true });
        await server.command("BGSAVE");
        await eventually(async () => {
          await expect(server.command("SET", "a", "b")).rejects.toThrow("MISCONF");
        });
        return server.url;
      },
      /^MISCONF /,
      "Redis cannot save its data: free space on its disk",
    ],
    [
      "a Redis that misses replicas",
      async () => {
        await redis.command("CONFIG", "SET", "min-replicas-to-write", 1);
        return redis.url;
      },
      /^NOREPLICAS /,
      "Redis misses replicas: start them, or lower its min-replicas-to-write",
    ],
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
