import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Yoga and this project must share one copy of graphql, because it checks types with `instanceof`.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve("graphql")) }] },
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 4,
    // No test depends on time. These only stop a test that hangs, so they allow for slow machines.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 200_000 } },
    reporters: ["default", "./test/support/closing-line.ts"],
  },
});
