import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { z } from "zod";
import { createLogger } from "../../src/observability/log.ts";
import { createRedis, type Redis, type Script } from "../../src/upstream/redis.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";

let server: RedisServer;
let redis: Redis;
let registry: Registry;
let logLines: string[];
const log = () => createLogger("trace", { write: (line) => void logLines.push(line) });
const connect = (url: string) =>
  createRedis({ url: new URL(url), log: log(), registry: (registry = new Registry()) });
type Arguments<T> = [Script<T>, string[], (string | number)[]];
const add = (by: number): Arguments<number> => [
  { text: "return redis.call('INCRBY', KEYS[1], ARGV[1])", answer: z.int() },
  ["sum"],
  [by],
];
const isBack = () => expect.poll(() => redis.run(...add(0)), { timeout: 10_000 }).not.toBeUndefined();
const metric = async (name: string) => (await registry.getSingleMetric(name)!.get()).values[0]!.value;

describeWithRedis("Redis", () => {
  beforeEach(async () => {
    server = await startRedis();
    logLines = [];
    redis = connect(server.url);
    await redis.ready;
  });
  afterEach(async () => {
    vi.useRealTimers();
    redis.close();
    await server.stop();
  });

  it("runs scripts, under a prefix of its own", async () => {
    expect(await redis.run(...add(2))).toBe(2);
    expect(await redis.run(...add(3))).toBe(5);
    expect(await server.command("GET", "tributary:sum")).toBe("5");
    expect(await metric("tributary_redis_up")).toBe(1);
  });

  it("that is frozen holds up one caller for 120 ms, and nobody after that one, until it is back", async () => {
    server.freeze();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let answer: unknown = "none yet";
    const first = redis.run(...add(1)).then((value) => (answer = value));
    await vi.advanceTimersByTimeAsync(119);
    expect(answer).toBe("none yet");
    await vi.advanceTimersByTimeAsync(1);
    expect(await first).toBeUndefined();
    expect(await redis.run(...add(1))).toBeUndefined();
    expect(await metric("tributary_redis_up")).toBe(0);
    expect(await metric("tributary_redis_failures_total")).toBe(1);
    expect(logLines.filter((line) => line.includes("Redis is away"))).toHaveLength(1);

    vi.useRealTimers();
    server.thaw();
    await isBack();
    expect(await metric("tributary_redis_up")).toBe(1);
  });

  it("that answers while this process is busy counts as answering", async () => {
    const answer = redis.run(...add(1));
    const until = performance.now() + 300;
    while (performance.now() < until);
    expect(await answer).toBe(1);
  });

  it("that was stopped is used again when it is started again", async () => {
    await server.stop();
    await expect.poll(() => redis.run(...add(1))).toBeUndefined();
    await server.start();
    await isBack();
    expect(logLines.filter((line) => line.includes("Redis is there"))).toHaveLength(2);
  });

  it("runs later, in their order, the scripts that nobody waits for", async () => {
    server.freeze();
    const set = (value: string): Arguments<number> => [
      { text: "return redis.call('APPEND', KEYS[1], ARGV[1])", answer: z.int() },
      ["text"],
      [value],
    ];
    void redis.run(...set("a"));
    for (const letter of "bcd") redis.runLater(...set(letter));
    await expect.poll(() => redis.run(...add(1))).toBeUndefined();
    redis.runLater(...set("e"));
    server.thaw();
    await expect.poll(() => server.command("GET", "tributary:text"), { timeout: 10_000 }).toMatch(/e$/);
    // What was sent before it was known to be away may have run twice; none is lost and none overtakes.
    expect(await server.command("GET", "tributary:text")).toMatch(/^abcd(b?c?d?)e$/);
  });

  it("that refuses a script is asked the next one all the same", async () => {
    await server.command("SET", "tributary:sum", "no number");
    expect(await redis.run(...add(1))).toBeUndefined();
    await server.command("DEL", "tributary:sum");
    expect(await redis.run(...add(1))).toBe(1);
    expect(logLines.join()).toContain("Redis has failed at something");
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
    await isBack();
  });

  it("that is not there at the start is waited for no longer than a second, and used when it comes", async () => {
    redis.close();
    await server.stop();
    redis = connect(server.url);
    await redis.ready;
    expect(await redis.run(...add(1))).toBeUndefined();
    expect(logLines.join()).toContain("Redis has not come");
    await server.start();
    await isBack();
  });

  it("has its password in no log", async () => {
    redis.close();
    redis = connect(server.url.replace("//", "//user:pass-that-is-secret@"));
    await redis.ready;
    expect(logLines.join()).toContain("WRONGPASS");
    expect(logLines.join()).not.toContain("pass-that-is-secret");
  });
});
