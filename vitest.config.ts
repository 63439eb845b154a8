import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Yoga and this project's code must share one copy of graphql: its types are told apart by identity.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve("graphql")) }] },
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 4,
    // No test waits for the clock: these only end one that hangs, on however slow a machine.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 200_000 } },
    reporters: ["default", "./test/support/closing-line.ts"],
  },
});
