import { spawnSync } from "node:child_process";

// `npm run test:node [-- <url>]` runs test/node against the node at the URL, or against the
// sandbox's chain.
const [url = ""] = process.argv.slice(2);
const { status } = spawnSync("vitest", ["run", "test/node"], {
  stdio: "inherit",
  env: { ...process.env, NODE_URL: url },
});
process.exit(status ?? 1);
