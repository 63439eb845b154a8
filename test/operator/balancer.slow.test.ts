import { spawnSync } from "node:child_process";
import { get } from "node:http";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CONNECTION_LIMITS } from "../../src/http/server.ts";
import { CADDY_MISSING, CADDYFILE, describeWithCaddy, startCaddy } from "../support/caddy.ts";
import type { Client } from "../support/client.ts";
import { openEventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { runProduction, startProduction } from "../support/production.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

describeWithCaddy(`the Caddyfile${CADDY_MISSING}`, () => {
  it("limits how long a request takes to arrive, its body not before the gateway answers 408", () => {
    const { stdout } = spawnSync("caddy", [
      "adapt",
      "--adapter",
      "caddyfile",
      "--config",
      CADDYFILE,
    ]);
    const [server] = Object.values<any>(JSON.parse(stdout.toString()).apps.http.servers);
    const toMs = (nanoseconds: number) => nanoseconds / 1e6;
    const { headersTimeout, requestTimeout, connectionsCheckingInterval } = CONNECTION_LIMITS;
    expect(toMs(server.read_header_timeout)).toBe(headersTimeout);
    expect(toMs(server.read_timeout)).toBeGreaterThan(requestTimeout + connectionsCheckingInterval);
    expect(toMs(server.read_timeout)).toBeLessThan(2 * requestTimeout);
  });
});

describeWithCaddy(`the load balancer${CADDY_MISSING}`, () => {
  let sandbox: TestSandbox;
  let caddy: Awaited<ReturnType<typeof startCaddy>>;
  beforeEach(async () => {
    sandbox = await startTestSandbox();
  });
  afterEach(async () => {
    caddy.stop();
    await sandbox.close();
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
    await eventually(async () => {
      expect(await lookUp(balancer, 10)).toContain(429);
    });
  });

  it("compresses answers, and passes each event of a stream on at once", async () => {
    const replica = await runReplica();
    const balancer = await startBalancer([replica]);
    const encodings = { "accept-encoding": "zstd, gzip" };
    // Caddy leaves short answers as they are, and `fetch` would hide the encoding.
    const encodingOf = (path: string) =>
      new Promise<string | undefined>((resolve, reject) => {
        get(balancer.url + path, { headers: encodings }, (response) => {
          response.resume();
          resolve(response.headers["content-encoding"]);
        }).on("error", reject);
      });
    const query = "{ __schema { types { name } } }";
    expect(await encodingOf(`/graphql?${new URLSearchParams({ query })}`)).toBe("zstd");
    const { id } = sandbox.account("creator");
    const addresses = Array.from({ length: 30 }, (_, i) => `a${i}: address`).join(" ");
    const stream = await openEventStream(
      balancer.url,
      { query: `subscription { walletById(socialId: "${id}") { ${addresses} } }` },
      { headers: encodings },
    );
    await eventually(() => {
      expect(stream.events()).toHaveLength(1);
    });
    expect(stream.headers["content-encoding"]).toBeUndefined();
    stream.close();
  });

  it("sends nothing to a replica that has not read the chain yet", async () => {
    const repair = sandbox.secondRpc.faults.add({ then: "reset" });
    const replicas = await Promise.all([
      runReplica(),
      runReplica({ SOLANA_RPC_URL: sandbox.secondRpc.url, RPC_TIMEOUT_MS: "5000" }),
    ]);
    const balancer = await startBalancer(replicas);
    await eventually(async () => {
      const before = await answered(replicas);
      expect(await lookUp(balancer, 10)).toEqual(TEN_FINE);
      const after = await answered(replicas);
      expect([after[0]! - before[0]!, after[1]! - before[1]!]).toEqual([10, 0]);
    });
    repair();
    await eventually(async () => {
      const before = await answered(replicas);
      await lookUp(balancer, 4);
      expect((await answered(replicas))[1]!).toBeGreaterThan(before[1]!);
    });
  });

  it("passes the contract's errors on while no replica reaches the chain", async () => {
    const replicas = await Promise.all([runReplica(), runReplica()]);
    const balancer = await startBalancer(replicas);
    const repair = sandbox.rpc.faults.add({ then: "reset" });
    await eventually(async () => {
      for (const { client } of replicas)
        expect((await client.request("/readyz")).body.warnings?.join()).toContain(
          "no chain endpoint answers",
        );
    });
    const counts: Record<string, number> = {};
    const count = (kind: string, { status, body }: { status: number; body: any }) => {
      const answer = `${kind}: ${status} ${body.error ?? body.data?.__typename ?? ""}`.trim();
      counts[answer] = (counts[answer] ?? 0) + 1;
    };
    const { id } = sandbox.account("creator");
    for (let i = 0; i < 10; i++) {
      count("page", await balancer.request("/"));
      count("GraphQL", await balancer.graphql("{ __typename }"));
      count("lookup", await balancer.lookup("creator"));
      count("collect", await balancer.collect(id));
    }
    expect(counts).toEqual({
      "page: 200": 10,
      "GraphQL: 200 Query": 10,
      "lookup: 500 LOOKUP_FAILED": 10,
      "collect: 500 COLLECT_FAILED": 10,
    });
    repair();
    expect(await lookUp(balancer, 10)).toEqual(TEN_FINE);
    for (const { program } of replicas) {
      await eventually(() => {
        expect(program.output().match(/"the chain answers again"/g)).toHaveLength(1);
      });
      expect(program.output().match(/"no chain endpoint answers/g)).toHaveLength(1);
    }
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
