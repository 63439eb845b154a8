import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Yoga and this project's code must share one copy of graphql: its types are told apart by identity.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve("graphql")) }] },
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 4,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ["default", "./test/support/closing-line.ts"],
  },
});
