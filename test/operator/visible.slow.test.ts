import { hostname } from "node:os";
import { Keypair } from "@solana/web3.js";
import { describe, expect } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { eventually } from "../support/eventually.ts";
import { type Program } from "../support/program.ts";
import { COMMIT } from "../../src/observability/version.ts";
import { createClient, from, type Client } from "../support/client.ts";
import { runProduction } from "../support/production.ts";
import { chain, sandbox, withNewSandbox } from "../support/fixtures.ts";
import { isMethod, isLook } from "../support/sandbox.ts";

const it = withNewSandbox();

async function run(env?: Record<string, string>) {
  const { program, client } = await runProduction(sandbox, env);
  return { program, ...client };
}
/** Warnings and errors, without those about the configuration and the lines of requests. */
const problemsIn = (lines: readonly { level: number; msg: string }[]) =>
  lines.filter(({ level, msg }) => level >= 40 && msg !== "answered" && !/^[A-Z_]+: /.test(msg));
const linesOf = (program: Program) =>
  program
    .output()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { level: number; msg: string; adminUrl?: string });
const stopped = async (program: Program) => {
  program.stop();
  await program.exitCode();
  return linesOf(program);
};

it("the log names the replica in each line, the version and commit when the process listens, and ends with a line that it has stopped", async () => {
  const { program } = await run();
  const lines = await stopped(program);
  // PORT is 0.
  for (const line of lines) expect(line).toMatchObject({ instance: `${hostname()}:0` });
  const listening = lines.find(({ msg }) => msg === "listening");
  expect(listening).toMatchObject({ version: manifest.version, commit: COMMIT });
  expect(lines.at(-1)).toMatchObject({ level: 30, msg: "stopped" });
});

it("the first scrape has the version, the commit and no NaN, and a later one has the fee payer's balance", async () => {
  const { request } = await run();
  const { body } = await request("/metrics");
  const labels = `version="${manifest.version}",commit="${COMMIT}"`;
  expect(body).toContain(`tributary_build_info{${labels}} 1\n`);
  // The lag of the event loop has no value before it is first measured, after 10 ms.
  expect(body.replace(/^nodejs_eventloop_lag_.*$/gm, "")).not.toMatch(/NaN/i);
  expect(body).not.toMatch(/^tributary_fee_payer_lamports 0$/m);
  await eventually(async () => {
    const later = (await request("/metrics")).body;
    expect(later).toMatch(/^tributary_fee_payer_lamports [1-9]\d+$/m);
    expect(later).toMatch(/^nodejs_eventloop_lag_p99_seconds 0\.\d+$/m);
  });
});

it("a rejected token is a warning in /readyz and one line in the log, until the network accepts it", async () => {
  const refuse = sandbox.social.faults.add({ then: { status: 401, body: "{}" } });
  const { program, request, lookup } = await run();
  for (let i = 0; i < 8; i++) expect((await lookup(`stranger${i}`)).status).toBe(503);
  const warning = expect.stringContaining("refuses SOCIAL_API_TOKEN");
  expect(await request("/readyz")).toMatchObject({
    status: 200,
    body: { status: "ok", warnings: [warning] },
  });

  refuse();
  await expect.poll(async () => (await lookup("creator")).status).toBe(200);
  expect((await request("/readyz")).body).toEqual({ status: "ok" });
  const lines = await stopped(program);
  expect(problemsIn(lines)).toEqual([expect.objectContaining({ level: 50, msg: warning })]);
  expect(program.output()).not.toContain('"stack"');
});

it("an empty fee payer is a warning in /readyz and one line in the log, until it is funded", async () => {
  const feePayer = Keypair.generate();
  const { program, request, collect } = await run({
    FEE_PAYER_KEYPAIR: JSON.stringify([...feePayer.secretKey]),
  });
  const { id } = sandbox.account("creator");
  for (let i = 0; i < 3; i++) expect((await collect(id)).body.error).toBe("INSUFFICIENT_FUNDS");
  const warning = expect.stringMatching(/fee payer \w+ .*fund it/);
  expect((await request("/readyz")).body).toEqual({ status: "ok", warnings: [warning] });

  chain.setBalance(feePayer.publicKey.toBase58(), 1_000_000_000n);
  await eventually(async () => {
    // A scrape reads the balance.
    await request("/metrics");
    expect((await request("/readyz")).body).toEqual({ status: "ok" });
  });
  const lines = await stopped(program);
  expect(problemsIn(lines)).toEqual([expect.objectContaining({ level: 40, msg: warning })]);
});

it("a proxy that is not in TRUST_PROXY is a warning in /readyz and one line in the log, without an address", async () => {
  const { program, request, lookup } = await run({ TRUST_PROXY: "" });
  await fetch(`${await program.address(/"url":"(http[^"]+)"/)}/wallet/lookup?handle=creator`);
  expect((await request("/readyz")).body).toEqual({ status: "ok" });
  for (let i = 0; i < 3; i++) await lookup("creator", from("203.0.113.9"));
  const warning = expect.stringContaining("not in TRUST_PROXY");
  expect((await request("/readyz")).body.warnings).toEqual([warning]);
  const lines = (await stopped(program)).filter(({ msg }) => msg.includes("not in TRUST_PROXY"));
  expect(lines).toEqual([expect.objectContaining({ level: 40, msg: warning })]);
  expect(lines[0]!.msg).not.toMatch(/\d+\.\d+/);
});

describe("an outage", () => {
  /** The gauges of readiness and upstreams. */
  const gauges = async (request: Client["request"]) =>
    Object.fromEntries(
      [
        ...(await request("/metrics")).body.matchAll(
          /^tributary_(ready|upstream_up\{.*\}) (\d)$/gm,
        ),
      ].map(([, name, value]) => [name!.replace(/.*"(\w+)".*/, "$1"), Number(value)]),
    );
  const UP = { ready: 1, chain: 1, social: 1 };

  it("of the chain shows in gauges, in /readyz, and in one line of the log for its start and its end", async () => {
    const { program, request } = await run();
    await expect.poll(() => gauges(request)).toEqual(UP);
    const repair = sandbox.rpc.faults.add({ then: "reset" });
    await expect.poll(() => gauges(request)).toEqual({ ...UP, chain: 0 });
    const warning = expect.stringContaining("no chain endpoint answers");
    expect(await request("/readyz")).toMatchObject({ status: 200, body: { warnings: [warning] } });
    repair();
    await expect.poll(() => gauges(request)).toEqual(UP);
    const lines = (await stopped(program)).map(({ msg }) => msg);
    expect(lines.filter((msg) => msg.startsWith("no chain endpoint answers"))).toHaveLength(1);
    expect(lines.filter((msg) => msg === "the chain answers again")).toHaveLength(1);
  });

  it("of the social network also ends without lookups", async () => {
    const { request, lookup } = await run();
    await expect.poll(() => gauges(request)).toEqual(UP);
    const repair = sandbox.social.faults.add({ then: "reset" });
    expect((await lookup("stranger")).status).toBe(503);
    repair();
    expect(await gauges(request)).toEqual({ ...UP, social: 0 });
    await expect.poll(() => gauges(request)).toEqual(UP);
  });
});

it("ADMIN_PORT answers until the process exits, also when PORT is closed and a collect is in flight", async () => {
  const { program, url, collect } = await run({ ADMIN_PORT: "0" });
  const admin = createClient(linesOf(program).find(({ msg }) => msg === "listening")!.adminUrl!);
  const confirm = sandbox.rpc.faults.add({
    when: isLook,
    then: { status: 503, body: "" },
  });
  const collected = collect(sandbox.account("creator").id);
  await expect.poll(() => sandbox.rpc.calls.some(isMethod("sendTransaction"))).toBe(true);
  program.stop();
  await expect.poll(() => fetch(url).catch(() => "closed")).toBe("closed");
  expect(await admin.request("/readyz")).toMatchObject({
    status: 503,
    body: { reasons: ["shutting down"] },
  });
  expect((await admin.request("/metrics")).status).toBe(200);
  confirm();
  expect((await collected).body.success).toBe(true);
  expect(await program.exitCode()).toBe(0);
});
