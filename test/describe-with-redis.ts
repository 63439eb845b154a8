import { spawnSync } from "node:child_process";
import { describe } from "vitest";

const isInstalled = spawnSync("redis-server", ["--version"]).status === 0;
const title = isInstalled ? "" : " (redis-server is not installed: apt-get install redis-server)";

/** Tests that need a real Redis. Where there is none they are skipped and say so; in CI they fail. */
export const describeWithRedis = (name: string, tests: () => void) =>
  describe.skipIf(!isInstalled && !process.env.CI)(name + title, tests);
