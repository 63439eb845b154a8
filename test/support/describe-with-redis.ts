import { spawnSync } from "node:child_process";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe } from "vitest";
import { createLogger } from "../../src/observability/log.ts";
import { createRedis, type Redis } from "../../src/upstream/redis.ts";
import { startRedis, type RedisServer } from "./redis-server.ts";

const isInstalled = spawnSync("redis-server", ["--version"]).status === 0;
const title = isInstalled ? "" : " (redis-server is not installed: apt-get install redis-server)";

/** Tests that need a real Redis. Where there is none they are skipped and say so; in CI they fail. */
export const describeWithRedis = (name: string, tests: () => void) =>
  describe.skipIf(!isInstalled && !process.env.CI)(name + title, tests);

/** Gives each test of the block a server of its own, empty, with a connection to it. */
export function eachWithRedis(take: (server: RedisServer, redis: Redis) => void): void {
  let server: RedisServer;
  let redis: Redis;
  beforeEach(async () => {
    server = await startRedis();
    redis = createRedis({ url: new URL(server.url), log: createLogger("silent"), registry: new Registry() });
    await redis.ready;
    take(server, redis);
  });
  afterEach(async () => {
    redis.close();
    await server.stop();
  });
}
