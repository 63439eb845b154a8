import { Registry } from "@prometheus-io/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createLogger } from "../../src/observability/log.ts";
import { createRedis, type Redis } from "../../src/store/redis.ts";
import { script } from "../../src/store/script.ts";
import { describeWithRedis, isBack } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster.ts";
import type { RedisServer } from "../support/redis-server.ts";

let redis: Redis;
let registry: Registry;
let logLines: string[];
/** Without `answerTimeoutMs`, the service's own timeout applies. */
function connect(urls: readonly URL[], answerTimeoutMs?: number): Redis {
  logLines = [];
  registry = new Registry();
  const log = createLogger("trace", { write: (line) => void logLines.push(line) });
  return (redis = createRedis({ urls, log, registry, answerTimeoutMs }));
}
afterEach(() => {
  redis.close();
});

const INCREMENT = script({
  keys: ["counter"],
  answer: z.int(),
  text: "return redis.call('INCR', counter)",
});
const increment = (counter: string) => redis.run(INCREMENT, { counter });
/** Keys that reach all masters. */
const KEYS = Array.from({ length: 30 }, (_, i) => `spread:${i}`);
const isUp = async () =>
  (await registry.getSingleMetric("tributary_redis_up")!.get()).values[0]!.value;

describeWithRedis("a Redis Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());
  beforeEach(async () => {
    for (const master of cluster.masters) await master.command("FLUSHALL");
    connect(cluster.urls, 600_000);
    await isBack(redis);
  });

  it("fails only the script whose keys are on different nodes", async () => {
    const incrementBoth = script({
      keys: ["a", "b"],
      answer: z.unknown(),
      text: "return {redis.call('INCR', a), redis.call('INCR', b)}",
    });
    expect(await redis.run(incrementBoth, { a: "a", b: "b" })).toBeUndefined();
    expect(await redis.run(incrementBoth, { a: "{tag}a", b: "{tag}b" })).toEqual([1, 1]);
    expect(await isUp()).toBe(1);
  });

  it("is down for all keys as soon as a node is killed, and is used again after the node's restart", async () => {
    await cluster.masters[1]!.stop();
    await eventually(async () => {
      expect(await isUp()).toBe(0);
    });
    for (const key of KEYS) expect(await increment(key)).toBeUndefined();
    await cluster.masters[1]!.start();
    await isBack(redis);
    expect(await Promise.all(KEYS.map(increment))).toHaveLength(KEYS.length);
  });

  it("is found through the URL of one node", async () => {
    redis.close();
    connect(cluster.urls.slice(1, 2), 600_000);
    await isBack(redis);
    expect(await Promise.all(KEYS.map(increment))).toEqual(KEYS.map(() => 1));
    for (const master of cluster.masters)
      expect(await master.command("KEYS", "tributary:spread:*")).not.toEqual([]);
    expect(logLines.join()).not.toContain('"level":50');
  });

  describe("whose user has only its keys and channels", () => {
    const connectAs = (user: string, node: RedisServer) => {
      redis.close();
      connect([new URL(node.url.replace("//", `//${user}:password@`))], 600_000);
    };
    const addUser = async (user: string, ...rules: string[]) => {
      for (const master of cluster.masters)
        await master.command(
          "ACL",
          ...["SETUSER", user, "on", ">password", "~tributary:*", "&tributary:*"],
          ...["+@all", "-@admin", "-@dangerous", "-info", "-cluster", ...rules],
        );
    };

    it("is used if the user may ask for the slots", async () => {
      await addUser("caller", "+cluster|slots");
      connectAs("caller", cluster.masters[1]!);
      await isBack(redis);
      expect(await Promise.all(KEYS.map(increment))).toEqual(KEYS.map(() => 1));
    });

    it("is not used as one server, and the log says which command to allow", async () => {
      await addUser("outsider");
      connectAs("outsider", cluster.masters[0]!);
      await eventually(async () => {
        redis.close();
        connectAs("outsider", cluster.masters[0]!);
        await redis.ready;
        expect(logLines.join()).toContain("allow the user the command CLUSTER SLOTS");
      });
      expect(await isUp()).toBe(0);
    });
  });

  it("delivers messages whichever node they are published on, also after the subscriber's node was killed", async () => {
    const publish = script({
      keys: ["channel"],
      args: ["message"],
      answer: z.int(),
      text: "return redis.call('PUBLISH', channel, message)",
    });
    const received: string[] = [];
    let reconnects = 0;
    redis.subscribe("news", {
      onMessage: (message) => received.push(message),
      onReconnect: () => reconnects++,
    });
    await eventually(async () => {
      await redis.run(publish, { channel: "news", message: "first" });
      expect(received).toContain("first");
    });
    // A node that does not have the key of the channel delivers the message too.
    for (const [i, master] of cluster.masters.entries()) {
      await master.command("PUBLISH", "tributary:news", `from ${i}`);
      await expect.poll(() => received).toContain(`from ${i}`);
    }
    const reconnectsBefore = reconnects;
    await cluster.masters[0]!.stop();
    await expect.poll(() => reconnects).toBeGreaterThan(reconnectsBefore);
    await cluster.masters[1]!.command("PUBLISH", "tributary:news", "while the node is down");
    await expect.poll(() => received).toContain("while the node is down");
    await cluster.masters[0]!.start();
    await isBack(redis);
  });
});
