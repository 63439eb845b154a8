import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { createClient, type Client } from "./client.ts";
import { endWithTests } from "./ended-children.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const CADDYFILE = fileURLToPath(new URL("../../Caddyfile", import.meta.url));

const isInstalled = spawnSync("caddy", ["version"]).status === 0;
export const describeWithCaddy = describe.skipIf(!isInstalled && !process.env.CI);
/** Says at the end of a title why the tests are skipped. */
export const CADDY_MISSING = isInstalled ? "" : " (caddy is not installed: apt-get install caddy)";

/** Starts Caddy as an operator does, and waits until it answers. */
export async function startCaddy(replicas: readonly { client: Client }[]) {
  const port = await freePort();
  const caddy = spawn("caddy", ["run", "--adapter", "caddyfile", "--config", CADDYFILE], {
    env: {
      PATH: process.env.PATH,
      HOME: temporaryFolder(),
      CADDY_ADMIN: `127.0.0.1:${await freePort()}`,
      LISTEN: `:${port}`,
      REPLICAS: replicas.map(({ client }) => new URL(client.url).host).join(" "),
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  endWithTests(caddy);
  let log = "";
  caddy.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const client = createClient(`http://127.0.0.1:${port}`);
  await eventually(async () => {
    expect((await client.lookup("creator")).status).toBe(200);
  });
  return { client, log: () => log, stop: () => caddy.kill("SIGKILL") };
}
