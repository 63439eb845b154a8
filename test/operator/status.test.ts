import { expect, it, onTestFinished } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { CONNECTION_LIMITS, listen } from "../../src/http/server.ts";
import { createClient, from } from "../support/client.ts";
import { eventually } from "../support/eventually.ts";
import { runMain } from "../support/program.ts";
import { hold, isLook } from "../support/sandbox.ts";
import { BOTH_ENDPOINTS, startWorld } from "../support/world.ts";

/** Starts a world whose gateway also serves an ADMIN_PORT, and a client of that port. */
async function start(variables: Parameters<typeof startWorld>[0] = {}) {
  const world = await startWorld(async (sandbox) => ({
    ADMIN_PORT: "0",
    ...(typeof variables === "function" ? await variables(sandbox) : variables),
  }));
  const at = { host: "127.0.0.1", port: 0 };
  const admin = await listen(world.gateway.admin, at, CONNECTION_LIMITS);
  onTestFinished(async () => {
    await Promise.all([world.close(), admin.close()]);
  });
  const { request } = createClient(admin.url);
  return { world, adminUrl: admin.url, status: async () => (await request("/status")).body };
}

it("/status shows an open collect, without its callers and without secrets", async () => {
  const { world, status } = await start(({ env }) => {
    const url = new URL(env.SOLANA_RPC_URL);
    Object.assign(url, { username: "a-user", password: "a-secret", search: "?key=a-secret" });
    return Promise.resolve({ SOLANA_RPC_URL: url.href });
  });
  const release = hold(world.sandbox.rpc, isLook);
  const { id, address } = world.account("creator");
  const callers = ["203.0.113.7", "198.51.100.9"];
  const collects = callers.map((caller) => world.collect(id, from(caller)));
  const unit = { unit: address, state: "sent", signature: expect.any(String), waiters: 2 };
  await eventually(async () => {
    const { collects } = await status();
    expect(collects).toMatchObject({ openCount: 1, open: [unit] });
  });
  const open = await status();
  expect(open).toMatchObject({
    endpoints: [{ host: new URL(world.sandbox.rpc.url).host, state: "ok" }],
    network: { circuit: "closed", waiting: 0 },
    version: manifest.version,
    replicas: { count: 1 },
  });
  await eventually(async () => {
    await world.request("/readyz");
    expect(await status()).toMatchObject({
      readyz: { status: "ok" },
      feePayer: { address: expect.any(String), lamports: expect.stringMatching(/^\d+$/) },
    });
  });
  expect(Object.keys(open.budgets.left).toSorted()).toEqual([
    ...["chain_calls", "fees", "small_fees", "social_calls", "social_reads"],
  ]);
  const text = JSON.stringify(open);
  expect(text).not.toMatch(/a-user|a-secret|203\.0\.113|198\.51\.100/);
  expect(text).not.toContain(world.sandbox.env.SOCIAL_API_TOKEN);

  release();
  const { signature } = open.collects.open[0];
  for (const answer of await Promise.all(collects)) expect(answer.body.txSignature).toBe(signature);
  expect((await status()).collects).toMatchObject({ openCount: 0, open: [] });
});

it("/status shows an endpoint that fails, why, and until when it backs off", async () => {
  const { world, status } = await start({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
  await world.gateway.start();
  expect((await status()).endpoints).toMatchObject([
    { state: "ok", failing: [], slot: expect.any(Number) },
    { state: "ok", failing: [] },
  ]);
  world.sandbox.rpc.faults.add({ then: { status: 503, body: "" } });
  expect((await world.lookup("creator")).status).toBe(200);
  const [first, second] = (await status()).endpoints;
  const { host } = new URL(world.sandbox.rpc.url);
  expect(first).toMatchObject({ host, state: "failing", failing: [{ kind: "reads" }] });
  expect(first.lastError.message).toContain(`at ${host}: status 503`);
  expect(first.calls.failed).toBeGreaterThanOrEqual(1);
  expect(first.calls.made).toBeGreaterThan(first.calls.failed);
  const [{ since, backsOffUntil }] = first.failing;
  expect(Date.parse(backsOffUntil)).toBeGreaterThan(Date.parse(since));
  expect(second).toMatchObject({ state: "ok", calls: { failed: 0 } });
});

it("/status shows a Redis that never answers", async () => {
  const { status } = await start({ REDIS_URL: "redis://127.0.0.1:1" });
  expect((await status()).replicas).toEqual({ count: 4, redis: "down" });
});

it("/status shows the network's open circuit", async () => {
  const { world, status } = await start();
  world.sandbox.social.faults.add({ then: { status: 401, body: "{}" } });
  for (const i of [0, 1, 2, 3, 4]) await world.lookup(`artist00${i}`);
  const { network } = await status();
  expect(network).toMatchObject({
    host: new URL(world.sandbox.social.url).host,
    lastError: "the social network: refused 401",
    openUntil: expect.any(String),
  });
  // The circuit is open for a second, and the machine may be slow.
  expect(network.circuit).toMatch(/^(open|half-open)$/);
});

it("/status shows the network's quota, the accounts that are cached, and open streams", async () => {
  const { world, status } = await start();
  const { id } = world.account("creator");
  world.sandbox.social.faults.add({
    then: {
      status: 200,
      headers: {
        "x-rate-limit-limit": "300",
        "x-rate-limit-remaining": "299",
        "x-rate-limit-reset": String(Math.ceil(Date.now() / 1_000) + 600),
      },
      body: JSON.stringify({ data: [{ id, username: "creator" }] }),
    },
  });
  await world.lookup("creator");
  const query = `subscription { walletById(socialId: "${id}") { address } }`;
  const path = `/graphql?query=${encodeURIComponent(query)}`;
  const leaving = new AbortController();
  const headers = { accept: "text/event-stream" };
  await fetch(world.url + path, { headers, signal: leaving.signal });
  const { network, caches, streams } = await status();
  leaving.abort();
  expect(network.quota).toEqual([
    { kind: "usernames", remaining: 299, limit: 300, resetAt: expect.any(String) },
  ]);
  expect(caches.accounts).toEqual({ size: 1, most: 200_000 });
  expect(streams).toMatchObject({ open: 1, accounts: 1 });
});

it("PORT never serves /status, with or without ADMIN_PORT", async () => {
  const { world } = await start();
  const other = await startWorld();
  onTestFinished(() => other.close());
  for (const { request } of [world, other])
    expect(await request("/status")).toMatchObject({ status: 404, body: { error: "NOT_FOUND" } });
});

/** Runs the command with these variables and options, and returns what it prints. */
async function run(env: Record<string, string>, ...options: string[]) {
  const program = runMain(env, ["status", ...options]);
  return { exitCode: await program.exitCode(), output: program.output() };
}

it("npm run status prints JSON for the service of these variables, or of --url", async () => {
  const { world, adminUrl } = await start();
  await world.lookup("creator");
  const { port } = new URL(adminUrl);
  for (const command of [
    run({ ADMIN_PORT: port, HOST: "0.0.0.0", FEE_PAYER_KEYPAIR: "" }),
    run({}, `--url=${adminUrl}/`),
  ]) {
    const { exitCode, output } = await command;
    expect(exitCode).toBe(0);
    expect(JSON.parse(output)).toMatchObject({ endpoints: [{ state: "ok" }] });
  }
});

it("npm run status says why it has no status", async () => {
  const { world } = await start();
  const without = await run({});
  expect(without.exitCode).toBe(1);
  expect(without.output).toMatch(/^ADMIN_PORT: expected .* npm run status -- --url=/);
  const wrong = await run({}, `--url=${world.url}`);
  expect(wrong.exitCode).toBe(1);
  expect(wrong.output).toMatch(/^No status at http.*: HTTP 404\. Check /);
});
