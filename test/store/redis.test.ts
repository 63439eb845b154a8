import { spawnSync } from "node:child_process";
import { Registry } from "@prometheus-io/client";
import { afterAll, afterEach, beforeEach, expect, it, vi } from "vitest";
import { z } from "zod";
import { createLogger } from "../../src/observability/log.ts";
import { createRedis, type Redis } from "../../src/store/redis.ts";
import { script } from "../../src/store/script.ts";
import { describeWithRedis, isBack } from "../support/describe-with-redis.ts";
import { startDroppingProxy } from "../support/doubles/dropping-proxy.ts";
import { reuseRedis, type RedisServer } from "../support/redis-server.ts";

/** The service's timeout for an answer. */
const DEFAULT_TIMEOUT_MS = 120;

let server: RedisServer;
let redis: Redis;
let registry: Registry;
let logLines: string[];
const log = () => createLogger("trace", { write: (line) => void logLines.push(line) });
/** Without `answerTimeoutMs`, the service's own timeout applies. */
const connect = (url: string, answerTimeoutMs?: number) =>
  createRedis({
    urls: [new URL(url)],
    log: log(),
    registry: (registry = new Registry()),
    answerTimeoutMs,
  });
const ADD = script({
  keys: ["sum"],
  args: ["by"],
  answer: z.int(),
  text: "return redis.call('INCRBY', sum, by)",
});
const add = (by: number) => [ADD, { sum: "sum", by }] as const;
const metric = async (name: string) =>
  (await registry.getSingleMetric(name)!.get()).values[0]!.value;

describeWithRedis("Redis", () => {
  const servers = reuseRedis();
  beforeEach(async () => {
    server = await servers.empty();
    logLines = [];
    redis = connect(server.url, 600_000);
    await redis.ready;
    await isBack(redis);
  });
  afterEach(() => {
    vi.useRealTimers();
    redis.close();
  });
  afterAll(servers.stop);
  /** Connects again, with the service's timeout. */
  const reconnect = async () => {
    redis.close();
    redis = connect(server.url);
    await isBack(redis);
  };

  it("runs scripts with prefixed keys", async () => {
    expect(await redis.run(...add(2))).toBe(2);
    expect(await redis.run(...add(3))).toBe(5);
    expect(await server.command("GET", "tributary:sum")).toBe("5");
    expect(await metric("tributary_redis_up")).toBe(1);
  });

  it("delays one caller for 120 ms when it is frozen, and no other caller until it is up again", async () => {
    // Faked before the connection is made, so that none of its timers is real.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await reconnect();
    logLines.length = 0;
    const failuresBefore = await metric("tributary_redis_failures_total");
    server.freeze();
    let answer: unknown = "none yet";
    const first = redis.run(...add(1)).then((value) => (answer = value));
    await vi.advanceTimersByTimeAsync(DEFAULT_TIMEOUT_MS - 1);
    expect(answer).toBe("none yet");
    await vi.advanceTimersByTimeAsync(1);
    expect(await first).toBeUndefined();
    expect(await redis.run(...add(1))).toBeUndefined();
    expect(await metric("tributary_redis_up")).toBe(0);
    expect(await metric("tributary_redis_failures_total")).toBe(failuresBefore + 1);
    expect(logLines.filter((line) => line.includes("Redis is unavailable"))).toHaveLength(1);

    vi.useRealTimers();
    server.thaw();
    await isBack(redis);
    expect(await metric("tributary_redis_up")).toBe(1);
  });

  it("counts as available when it answers while this process is busy", async () => {
    await reconnect();
    const answer = redis.run(...add(1));
    const sentAt = performance.now();
    const hasRun = () => {
      const { stdout } = spawnSync("redis-cli", ["-u", server.url, "GET", "tributary:sum"]);
      return stdout.toString().trim() === "1";
    };
    while (!hasRun() || performance.now() < sentAt + 2 * DEFAULT_TIMEOUT_MS);
    expect(await answer).toBe(1);
  });

  it.each([0, 2])(
    "is used again after the loss of a reply, after %i other ones",
    async (passed) => {
      const proxy = await startDroppingProxy(server.port);
      redis.close();
      proxy.loseOne(passed);
      redis = connect(proxy.url, 500);
      await expect
        .poll(async () => {
          await redis.run(...add(1));
          return proxy.hasLost();
        })
        .toBe(true);
      await isBack(redis);
      await proxy.close();
    },
  );

  it("gives no script the answer to another one after the loss of a reply", async () => {
    const proxy = await startDroppingProxy(server.port);
    redis.close();
    redis = connect(proxy.url, 600_000);
    await isBack(redis);
    proxy.loseOne();
    const first = redis.run(...add(1));
    await expect.poll(proxy.hasLost).toBe(true);
    const second = redis.run(...add(10));
    expect([await first, await second]).toEqual([undefined, undefined]);
    await isBack(redis);
    expect(await redis.run(...add(100))).toBe(111);
    await proxy.close();
  });

  it("runs queued scripts later, in their order, unless it is too late for them", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await reconnect();
    server.freeze();
    const appendTo = script({
      keys: ["text"],
      args: ["value"],
      answer: z.int(),
      text: "return redis.call('APPEND', text, value)",
    });
    const append = (value: string) => [appendTo, { text: "text", value }] as const;
    void redis.run(...append("a"));
    for (const letter of "bcd") redis.runLater(...append(letter));
    await vi.advanceTimersByTimeAsync(DEFAULT_TIMEOUT_MS);
    expect(await redis.run(...add(1))).toBeUndefined();
    // Only worth something soon.
    redis.runLater(...append("x"), 0);
    redis.runLater(...append("e"), 600_000);
    vi.useRealTimers();
    server.thaw();
    await expect.poll(() => server.command("GET", "tributary:text")).toMatch(/e$/);
    // Scripts sent before the timeout may run twice; none is lost or reordered.
    expect(await server.command("GET", "tributary:text")).toMatch(/^abcd(b?c?d?)e$/);
  });

  it("does not repeat a queued script that fails, and logs its failure", async () => {
    await server.command("SET", "tributary:sum", "no number");
    redis.runLater(...add(1));
    await redis.flush(600_000);
    expect(redis.unwritten()).toBe(0);
    expect(logLines.join()).toContain("a Redis script failed");
    // After an outage it would succeed.
    await server.command("DEL", "tributary:sum");
    await server.stop();
    await expect.poll(() => redis.run(...add(1))).toBeUndefined();
    await server.start();
    await isBack(redis);
    expect(await server.command("EXISTS", "tributary:sum")).toBe(0);
  });

  it("counts the queued scripts that have not run, and waits for them up to the timeout", async () => {
    await reconnect();
    await server.stop();
    await expect.poll(() => redis.run(...add(1))).toBeUndefined();
    const addMember = script({
      keys: ["members"],
      args: ["member"],
      answer: z.int(),
      text: "return redis.call('SADD', members, member)",
    });
    // Redis may run a queued script twice.
    for (let i = 0; i < 3; i++) redis.runLater(addMember, { members: "members", member: i });
    await redis.flush(1);
    expect(redis.unwritten()).toBe(3);
    const flushed = redis.flush(600_000);
    await server.start();
    await flushed;
    expect(redis.unwritten()).toBe(0);
    expect(await server.command("SCARD", "tributary:members")).toBe(3);
  });

  it("fails only the script whose answer has an unexpected type", async () => {
    const wrongType = script({ answer: z.int(), text: "return 'five'" });
    expect(await redis.run(wrongType, {})).toBeUndefined();
    expect(await redis.run(...add(1))).toBe(1);
    expect(await metric("tributary_redis_failures_total")).toBe(1);
  });

  it.each([
    ["is full", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"],
    ["has become a replica", "REPLICAOF 127.0.0.1 9", "REPLICAOF NO ONE"],
  ])(
    "is unavailable when it %s, until it accepts writes again",
    async (_name, stopWrites, allowWrites) => {
      const command = (text: string) => server.command(...(text.split(" ") as [string]));
      await command(stopWrites);
      expect(await redis.run(...add(1))).toBeUndefined();
      expect(await metric("tributary_redis_up")).toBe(0);
      await command(allowWrites);
      await isBack(redis);
    },
  );

  it("delays the start by at most a second when it is down, and is used when it is up", async () => {
    redis.close();
    await server.stop();
    redis = connect(server.url, 600_000);
    await redis.ready;
    expect(await redis.run(...add(1))).toBeUndefined();
    expect(logLines.join()).toContain("Redis is not available yet");
    await server.start();
    await isBack(redis);
  });

  it("is never logged with its password", async () => {
    // Repeats until the refusal arrives within the second that the start waits for Redis.
    await expect
      .poll(async () => {
        redis.close();
        redis = connect(server.url.replace("//", "//user:pass-that-is-secret@"), 600_000);
        await redis.ready;
        return logLines.join();
      })
      .toContain("WRONGPASS");
    expect(logLines.join()).not.toContain("pass-that-is-secret");
  });
});
