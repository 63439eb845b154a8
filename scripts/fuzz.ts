import { spawnSync } from "node:child_process";

// `npm run fuzz [-- cases]` runs the properties of test/fuzz, and the one of prices, with many cases.
const [cases = "100000"] = process.argv.slice(2);
const { status } = spawnSync("vitest", ["run", "test/fuzz", "bench/prices/fuzz-prices"], {
  stdio: "inherit",
  env: {
    FUZZ_SECONDS: "900",
    FUZZ_SEED: String(Date.now() % 2 ** 31),
    ...process.env,
    FUZZ_CASES: cases,
  },
});
process.exit(status ?? 1);
