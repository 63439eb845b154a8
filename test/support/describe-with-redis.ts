import { spawnSync } from "node:child_process";
import { Registry } from "@prometheus-io/client";
import { afterAll, afterEach, beforeEach, describe, expect, vi } from "vitest";
import { z } from "zod";
import { createLogger } from "../../src/observability/log.ts";
import { createRedis, type Redis } from "../../src/store/redis.ts";
import { script } from "../../src/store/script.ts";
import { eventually } from "./eventually.ts";
import { reuseRedis, type RedisServer } from "./redis-server.ts";

const isInstalled = spawnSync("redis-server", ["--version"]).status === 0;
const title = isInstalled ? "" : " (redis-server is not installed: apt-get install redis-server)";
/** Whether tests with Redis run. */
export const hasRedis = isInstalled || !!process.env.CI;

/**
 * Tests that need a real Redis. Without redis-server they are skipped with a note, and fail in CI.
 */
export const describeWithRedis = (name: string, tests: () => void) =>
  describe.skipIf(!hasRedis)(name + title, tests);

/** For tests that wait for a frozen Redis. Long enough for a slow machine. */
export const FROZEN = { answerTimeoutMs: 1_000 };
/** Returns 1. */
export const PING = script({ answer: z.int(), text: "return 1" });

/** Resolves when Redis answers. */
export const isBack = (redis: Redis) =>
  eventually(async () => {
    expect(await redis.run(PING, {})).toBe(1);
  });

/** The server and the connection of the test that runs. */
export let server: RedisServer;
export let redis: Redis;

/**
 * Gives each test of the block an empty server and a new connection, whose calls do not time out by
 * default.
 */
export function eachWithRedis({ answerTimeoutMs = 600_000 } = {}): void {
  const servers = reuseRedis();
  beforeEach(async () => {
    server = await servers.empty();
    redis = createRedis({
      urls: [new URL(server.url)],
      log: createLogger("silent"),
      registry: new Registry(),
      answerTimeoutMs,
    });
    await redis.ready;
    await isBack(redis);
  });
  afterEach(() => {
    redis.close();
  });
  afterAll(servers.stop);
}

/**
 * Tests of a rule that exists twice: without Redis, and with an empty server for each test.
 * `performance.now()` is simulated time, which is also the time of Redis's scripts.
 */
export function describeInMemoryAndInRedis(
  name: string,
  tests: (getRedis: () => Redis | undefined) => void,
): void {
  const simulateTime = () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["performance"] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });
  };
  describe(`${name}, in memory`, () => {
    simulateTime();
    tests(() => undefined);
  });
  describeWithRedis(`${name}, in Redis`, () => {
    eachWithRedis();
    beforeEach(() => {
      redis = inSimulatedTime(redis);
    });
    simulateTime();
    tests(() => redis);
  });
}

/** Sets the simulated time to so many seconds. */
export function setSeconds(seconds: number): void {
  vi.advanceTimersByTime(seconds * 1_000 - performance.now());
}

/** The same Redis, except that scripts get the time from `performance.now()`. */
const inSimulatedTime = (redis: Redis): Redis => ({
  ...redis,
  run(script, call) {
    const microseconds = Math.round(performance.now() * 1_000);
    const time = `{'${Math.floor(microseconds / 1e6)}', '${microseconds % 1e6}'}`;
    const timed = `function(name, ...) return name == 'TIME' and ${time} or redis.call(name, ...) end`;
    return redis.run({ ...script, text: `local redis = {call = ${timed}}\n${script.text}` }, call);
  },
});
