import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Workers, and the processes that tests start, load compiled modules from here, which takes less
// CPU time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL("node_modules/.cache/compiled", import.meta.url),
);

const SLOW = "test/**/*.slow.test.ts";
const LONG = "test/**/*.long.test.ts";
/** Need the launch platform's own programs: see scripts/test-platform.ts. */
const PLATFORM = "test/**/*.platform.test.ts";

export default defineConfig({
  test: {
    // Each is a run of its own: `npm test`, `npm run test:slow` and `npm run test:clients`.
    projects: [
      {
        extends: true,
        test: {
          name: "fast",
          include: ["test/**/*.test.ts"],
          exclude: [SLOW, LONG, PLATFORM],
          // Enough for two cores. Each worker first takes seconds of CPU time.
          maxWorkers: 4,
          // `npm run fuzz` also runs files of the others, which have more workers.
          sequence: { groupOrder: 1 },
          // These take seconds on a busy machine.
          testTimeout: 30_000,
          hookTimeout: 30_000,
          expect: { poll: { interval: 10, timeout: 25_000 } },
        },
      },
      { extends: true, test: { name: "slow", include: [SLOW] } },
      { extends: true, test: { name: "long", include: [LONG] } },
      // `npm run bench:prices`: measures CPU time.
      { extends: true, test: { name: "bench", include: ["bench/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "platform",
          include: [PLATFORM, "test/{contract,coins,node,faults,chain/collect}/**/*.test.ts"],
          exclude: [SLOW, LONG],
          setupFiles: ["test/support/exit-on-sigterm.ts", "test/platform/excluded.ts"],
          env: { PLATFORM_PROGRAMS: process.env.PLATFORM_PROGRAMS ?? "" },
          // The platform's programs are large: in one worker they would add up to gigabytes.
          isolate: true,
        },
      },
    ],
    // Only the project `platform` runs on the platform's own programs.
    env: { PLATFORM_PROGRAMS: "" },
    pool: "forks",
    maxWorkers: 6,
    // A worker runs many files, and Node loads the modules, as in production: each once.
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    setupFiles: ["test/support/exit-on-sigterm.ts"],
    // No test depends on time. These only stop a test that hangs; those that start processes may
    // take minutes on a busy machine.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 200_000 } },
    reporters: ["default", "./test/support/closing-line.ts"],
  },
});
