import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect } from "vitest";
import { createClient, type Client } from "../support/client.ts";
import { endWithTests } from "../support/ended-children.ts";
import { eventually } from "../support/eventually.ts";
import { runProduction, startProduction } from "../support/production.ts";
import { sandbox, withNewSandbox } from "../support/fixtures.ts";
import { freePort } from "../support/free-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CADDYFILE = fileURLToPath(new URL("../../Caddyfile", import.meta.url));

const isInstalled = spawnSync("caddy", ["version"]).status === 0;
const title = isInstalled ? "" : " (caddy is not installed: apt-get install caddy)";

/** Starts Caddy as an operator does, and waits until it answers. */
async function startCaddy(replicas: readonly { client: Client }[]) {
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

describe.skipIf(!isInstalled && !process.env.CI)(`the load balancer${title}`, () => {
  const it = withNewSandbox();
  let caddy: Awaited<ReturnType<typeof startCaddy>>;
  afterEach(() => {
    caddy.stop();
  });

  const runReplica = (env: Record<string, string> = {}) =>
    runProduction(sandbox, { RATE_LIMIT_MAX: "1000000", ...env });
  const startReplica = () => startProduction(sandbox, { RATE_LIMIT_MAX: "1000000" });

  async function startBalancer(replicas: readonly { client: Client }[]): Promise<Client> {
    caddy = await startCaddy(replicas);
    return caddy.client;
  }

  /** How many lookups each replica has answered. */
  const answered = (replicas: readonly { client: Client }[]) =>
    Promise.all(
      replicas.map(async ({ client }) => {
        const { body } = await client.request("/metrics");
        return Number(
          /^tributary_requests_total\{operation="lookup",code="OK"\} (\d+)$/m.exec(body)?.[1] ?? 0,
        );
      }),
    );
  const lookUp = async (balancer: Client, times: number) => {
    const statuses: number[] = [];
    for (let i = 0; i < times; i++) statuses.push((await balancer.lookup("creator")).status);
    return statuses;
  };
  const TEN_FINE = Array<number>(10).fill(200);

  it("uses both replicas, hides metrics and readiness, and discards the client's X-Forwarded-For", async () => {
    const replicas = await Promise.all([
      runReplica({ RATE_LIMIT_MAX: "30" }),
      runReplica({ RATE_LIMIT_MAX: "30" }),
    ]);
    const balancer = await startBalancer(replicas);
    await eventually(async () => {
      await lookUp(balancer, 2);
      expect(await answered(replicas)).toEqual([expect.any(Number), expect.any(Number)]);
      for (const count of await answered(replicas)) expect(count).toBeGreaterThan(0);
    });
    expect((await balancer.request("/metrics")).status).toBe(404);
    expect((await balancer.request("/readyz")).status).toBe(404);
    // Each request names another address in the header; they still share one limit.
    await expect.poll(() => lookUp(balancer, 10)).toContain(429);
  });

  it("loses no request when a replica stops, and no lookup when one is killed", async () => {
    const replicas = await Promise.all([startReplica(), startReplica(), runReplica()]);
    const balancer = await startBalancer(replicas);
    const { child } = replicas[0].program;
    child.kill("SIGTERM");
    while (child.exitCode === null) expect(await lookUp(balancer, 10)).toEqual(TEN_FINE);

    replicas[1].program.child.kill("SIGKILL");
    await replicas[1].program.exitCode();
    let beforeLast: number;
    do {
      [beforeLast] = (await answered([replicas[2]])) as [number];
      expect(await lookUp(balancer, 10)).toEqual(TEN_FINE);
    } while ((await answered([replicas[2]]))[0]! - beforeLast < 10);
    // Caddy has found two replicas away meanwhile.
    expect(caddy.log()).toContain("serving initial configuration");
    expect(caddy.log()).not.toContain("health_checker");
  });
});
