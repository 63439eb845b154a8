import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer as createPlainServer, type AddressInfo } from "node:net";
import { createServer } from "node:tls";
import { expect, onTestFinished } from "vitest";
import { UNTRUSTED } from "../support/certificate.ts";
import { describeWithRedis, eachWithRedis, server } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import { runProduction } from "../support/production.ts";
import type { Program } from "../support/program.ts";
import { startRedis } from "../support/redis-server.ts";
import { sandbox, withNewSandbox } from "../support/fixtures.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const it = withNewSandbox();

describeWithRedis("a mistake in REDIS_URL", () => {
  eachWithRedis();

  const warningsOf = (program: Program) =>
    [...program.output().matchAll(/^\{"level":40.*$/gm)]
      .map(([line]) => JSON.parse(line) as { msg: string; reason?: string })
      .filter(({ reason }) => reason !== undefined);

  it.each<[string, () => Promise<string> | string, RegExp, string]>([
    [
      "a database that Redis does not have",
      () => `${server.url}/99`,
      /DB index/,
      "use a database that Redis has",
    ],
    [
      "a numbered database of a cluster",
      async () => {
        // Redis has none, so this is what Valkey 9 would answer.
        const valkey = createPlainServer((socket) => {
          socket.on("data", (data) => {
            for (const [, name] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g))
              socket.write(
                /^eval/i.test(name!)
                  ? "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
                  : "+OK\r\n",
              );
          });
        });
        await once(valkey.listen(0, "127.0.0.1"), "listening");
        onTestFinished(() => void valkey.close());
        return `redis://127.0.0.1:${(valkey.address() as AddressInfo).port}/2`;
      },
      /^CROSSSLOT /,
      "a node of a Redis Cluster: use database 0",
    ],
    [
      "several servers without a cluster",
      async () => {
        const other = await startRedis();
        onTestFinished(other.stop);
        return `${server.url},${other.url}`;
      },
      /cluster support disabled/,
      "several URLs must be nodes of one Redis Cluster",
    ],
    [
      "a user without channels",
      async () => {
        await server.command(
          "ACL",
          ...["SETUSER", "caller", "on", ">password", "~tributary:*", "+@all", "resetchannels"],
        );
        return server.url.replace("//", "//caller:password@");
      },
      /ACL failure|channel/,
      "allow the user the keys and the channels",
    ],
    [
      "an unknown authority of its certificate",
      async () => {
        const tls = createServer(UNTRUSTED).listen(0, "127.0.0.1");
        await once(tls, "listening");
        onTestFinished(() => void tls.close());
        return `rediss://127.0.0.1:${(tls.address() as AddressInfo).port}`;
      },
      /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
      "authority is not trusted: name that in NODE_EXTRA_CA_CERTS",
    ],
    [
      "a Redis that cannot save",
      async () => {
        const folder = temporaryFolder();
        const saving = await startRedis(() => ["--dir", folder, "--save", "3600 1"]);
        onTestFinished(saving.stop);
        rmSync(folder, { recursive: true });
        await saving.command("BGSAVE");
        await eventually(async () => {
          await expect(saving.command("SET", "a", "b")).rejects.toThrow("MISCONF");
        });
        return saving.url;
      },
      /^MISCONF /,
      "Redis cannot save its data: free space on its disk",
    ],
    [
      "a Redis that misses replicas",
      async () => {
        await server.command("CONFIG", "SET", "min-replicas-to-write", 1);
        return server.url;
      },
      /^NOREPLICAS /,
      "Redis misses replicas: start them, or lower its min-replicas-to-write",
    ],
    [
      "a wrong password",
      async () => {
        await server.command("CONFIG", "SET", "requirepass", "the-password");
        return server.url.replace("//", "//:not-the-password@");
      },
      /^(WRONGPASS|NOAUTH) /,
      "check the user and the password",
    ],
    [
      "TLS at a port without it",
      () => server.url.replace("redis:", "rediss:"),
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
        await server.command("REPLICAOF", "127.0.0.1", 1);
        return server.url;
      },
      /^READONLY /,
      "a read-only replica: set REDIS_URL to the primary's URL",
    ],
    [
      "a full Redis",
      async () => {
        await server.command("CONFIG", "SET", "maxmemory", 1);
        return server.url;
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
  });
});
