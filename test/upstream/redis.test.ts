import { spawnSync } from "node:child_process";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { z } from "zod";
import { createLogger } from "../../src/observability/log.ts";
import { createRedis, type Redis, type Script } from "../../src/upstream/redis.ts";
import { describeWithRedis, isBack } from "../support/describe-with-redis.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";

/** What the service waits for an answer. */
const DEFAULT_TIMEOUT_MS = 120;

let server: RedisServer;
let redis: Redis;
let registry: Registry;
let logLines: string[];
const log = () => createLogger("trace", { write: (line) => void logLines.push(line) });
/** By default with a deadline that only fake timers reach. */
const connect = (url: string, answerTimeoutMs?: number) =>
  createRedis({ url: new URL(url), log: log(), registry: (registry = new Registry()), answerTimeoutMs });
type Arguments<T> = [Script<T>, string[], (string | number)[]];
const add = (by: number): Arguments<number> => [
  { text: "return redis.call('INCRBY', KEYS[1], ARGV[1])", answer: z.int() },
  ["sum"],
  [by],
];
const metric = async (name: string) => (await registry.getSingleMetric(name)!.get()).values[0]!.value;

describeWithRedis("Redis", () => {
  beforeEach(async () => {
    server = await startRedis();
    logLines = [];
    redis = connect(server.url, 600_000);
    await isBack(redis);
  });
  afterEach(async () => {
    vi.useRealTimers();
    redis.close();
    await server.stop();
  });
  /** Connects anew, with the deadline of the service. */
  const reconnect = async () => {
    redis.close();
    redis = connect(server.url);
    await isBack(redis);
  };

  it("runs scripts, under a prefix of its own", async () => {
    expect(await redis.run(...add(2))).toBe(2);
    expect(await redis.run(...add(3))).toBe(5);
    expect(await server.command("GET", "tributary:sum")).toBe("5");
    expect(await metric("tributary_redis_up")).toBe(1);
  });

  it("that is frozen holds up one caller for 120 ms, and nobody after that one, until it is back", async () => {
    // From before it connects: time passes only here.
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

  it("that answers while this process is busy counts as answering", async () => {
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

  it("that was stopped is used again when it is started again", async () => {
    await server.stop();
    await expect.poll(() => redis.run(...add(1))).toBeUndefined();
    await server.start();
    await isBack(redis);
    expect(logLines.filter((line) => line.includes("Redis is available"))).toHaveLength(2);
  });

  it("runs later, in their order, the scripts that nobody waits for", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await reconnect();
    server.freeze();
    const append = (value: string): Arguments<number> => [
      { text: "return redis.call('APPEND', KEYS[1], ARGV[1])", answer: z.int() },
      ["text"],
      [value],
    ];
    void redis.run(...append("a"));
    for (const letter of "bcd") redis.runLater(...append(letter));
    await vi.advanceTimersByTimeAsync(DEFAULT_TIMEOUT_MS);
    expect(await redis.run(...add(1))).toBeUndefined();
    redis.runLater(...append("e"));
    server.thaw();
    await expect.poll(() => server.command("GET", "tributary:text")).toMatch(/e$/);
    // What was sent before it was known to be away may have run twice; none is lost and none overtakes.
    expect(await server.command("GET", "tributary:text")).toMatch(/^abcd(b?c?d?)e$/);
  });

  it("that refuses a script is asked the next one all the same", async () => {
    await server.command("SET", "tributary:sum", "no number");
    expect(await redis.run(...add(1))).toBeUndefined();
    await server.command("DEL", "tributary:sum");
    expect(await redis.run(...add(1))).toBe(1);
    expect(logLines.join()).toContain("a Redis script failed");
    expect(await metric("tributary_redis_up")).toBe(1);
  });

  it("that answers what nobody expected has failed at that one script", async () => {
    const strange = { text: "return 'five'", answer: z.int() };
    expect(await redis.run(strange, [], [])).toBeUndefined();
    expect(await redis.run(...add(1))).toBe(1);
    expect(await metric("tributary_redis_failures_total")).toBe(1);
  });

  it.each([
    ["is full", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"],
    ["has become another one's replica", "REPLICAOF 127.0.0.1 9", "REPLICAOF NO ONE"],
  ])("that %s is away until it takes writes again", async (_name, fill, empty) => {
    const command = (text: string) => server.command(...(text.split(" ") as [string]));
    await command(fill);
    expect(await redis.run(...add(1))).toBeUndefined();
    expect(await metric("tributary_redis_up")).toBe(0);
    await command(empty);
    await isBack(redis);
  });

  it("that is not there at the start is waited for no longer than a second, and used when it comes", async () => {
    redis.close();
    await server.stop();
    redis = connect(server.url, 600_000);
    await redis.ready;
    expect(await redis.run(...add(1))).toBeUndefined();
    expect(logLines.join()).toContain("Redis is not available yet");
    await server.start();
    await isBack(redis);
  });

  it("has its password in no log", async () => {
    // Until the refusal has come within the second that the start waits for Redis.
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
