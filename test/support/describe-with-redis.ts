import { spawnSync } from "node:child_process";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { z } from "zod";
import { createLogger } from "../../src/observability/log.ts";
import { createRedis, type Redis } from "../../src/upstream/redis.ts";
import { eventually } from "./eventually.ts";
import { startRedis, type RedisServer } from "./redis-server.ts";

const isInstalled = spawnSync("redis-server", ["--version"]).status === 0;
const title = isInstalled ? "" : " (redis-server is not installed: apt-get install redis-server)";

/** Tests that need a real Redis. Where there is none they are skipped and say so; in CI they fail. */
export const describeWithRedis = (name: string, tests: () => void) =>
  describe.skipIf(!isInstalled && !process.env.CI)(name + title, tests);

/** Far above what a busy machine needs, and short enough to wait for where Redis is frozen. */
const ANSWER_TIMEOUT_MS = 2_000;
const NOTHING = { text: "return 1", answer: z.int() };

/** Resolves when Redis answers. */
export const isBack = (redis: Redis) =>
  eventually(async () => {
    expect(await redis.run(NOTHING, [], [])).toBe(1);
  });

/** Gives each test of the block a server of its own, empty, with a connection to it. */
export function eachWithRedis(take: (server: RedisServer, redis: Redis) => void): void {
  let server: RedisServer;
  let redis: Redis;
  beforeEach(async () => {
    server = await startRedis();
    redis = createRedis({
      url: new URL(server.url),
      log: createLogger("silent"),
      registry: new Registry(),
      answerTimeoutMs: ANSWER_TIMEOUT_MS,
    });
    await isBack(redis);
    take(server, redis);
  });
  afterEach(async () => {
    redis.close();
    await server.stop();
  });
}
