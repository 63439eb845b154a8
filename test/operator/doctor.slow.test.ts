import { once } from "node:events";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { Keypair } from "@solana/web3.js";
import { describe, expect, onTestFinished } from "vitest";
import { REFUSES_VERSION_1 } from "../support/refuse-version-1.ts";
import { EXPIRED, TRUSTED, UNTRUSTED } from "../support/certificate.ts";
import { describeWithRedis, eachWithRedis, server } from "../support/describe-with-redis.ts";
import { runMain, startProgram, type Program } from "../support/program.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { rpcError, rpcResult } from "../support/rpc-answers.ts";
import { chain, sandbox, withNewSandbox } from "../support/fixtures.ts";
import { isMethod } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";
const MAINNET = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";

const it = withNewSandbox();

const envWith = (env: Record<string, string>): Record<string, string> => ({
  ...sandbox.env,
  ...AMPLE_DEADLINES,
  PORT: "0",
  ...env,
});

/** Runs the doctor with the sandbox's variables and these. */
const doctor = (env: Record<string, string> = {}) => resultOf(runMain(envWith(env), ["doctor"]));

async function resultOf(program: Program) {
  const exitCode = await program.exitCode();
  const lines = program.output().trim().split("\n");
  return {
    exitCode,
    lines,
    last: lines.at(-1)!,
    line: (start: string) => lines.find((each) => each.startsWith(start)),
  };
}

describe("npm run doctor", () => {
  it("exits with 0 when everything works, with a line for each check, and spends nothing", async () => {
    const { exitCode, lines, last } = await resultOf(
      startProgram(envWith({}), undefined, ["doctor"]),
    );
    expect(lines.map((line) => line.replace(/:.*/, "")).toSorted()).toEqual([
      "Nothing is wrong.",
      "ok     ESCROW_PROGRAM_ID",
      "ok     FEE_PAYER_KEYPAIR",
      "ok     REDIS_URL",
      "ok     SOCIAL_API_TOKEN",
      "ok     SOCIAL_API_TOKEN",
      "ok     SOLANA_RPC_URL",
      "ok     SOLANA_RPC_URL",
      "ok     SOLANA_RPC_URL",
      "ok     SOLANA_RPC_URL",
    ]);
    expect(last).toBe("Nothing is wrong.");
    expect(exitCode).toBe(0);
    expect(chain.ledger()).toHaveLength(0);
  });

  it("exits with 1 and names each variable at fault, with the fix and without secrets", async () => {
    const missing = Keypair.generate().publicKey.toBase58();
    const { exitCode, lines, line, last } = await doctor({
      SOCIAL_API_TOKEN: "a-token-that-is-wrong",
      ESCROW_PROGRAM_ID: missing,
      FEE_PAYER_KEYPAIR: JSON.stringify([...Keypair.generate().secretKey]),
      SOLANA_RPC_URL: `${sandbox.rpc.url},http://127.0.0.1:1/a-secret-key`,
      REDIS_URL: "redis://:a-secret-password@127.0.0.1:1",
    });
    expect(line("WRONG  SOCIAL_API_TOKEN")).toContain(
      "check it in the network's developer console",
    );
    expect(line("WRONG  ESCROW_PROGRAM_ID")).toContain(
      `there is no program ${missing} on a private cluster: check the id`,
    );
    expect(line("WRONG  FEE_PAYER_KEYPAIR")).toContain("send SOL to it");
    expect(line("WRONG  SOLANA_RPC_URL")).toMatch(
      /127\.0\.0\.1:1 does not answer \(ECONNREFUSED\): nothing listens at this port/,
    );
    expect(line("WRONG  REDIS_URL")).toContain("(ECONNREFUSED): nothing listens at this port");
    expect(last.replace("At fault: ", "").split(", ").toSorted()).toEqual([
      "ESCROW_PROGRAM_ID",
      "FEE_PAYER_KEYPAIR",
      "REDIS_URL",
      "SOCIAL_API_TOKEN",
      "SOLANA_RPC_URL",
    ]);
    expect(exitCode).toBe(1);
    expect(lines.join("\n")).not.toMatch(/a-secret|that-is-wrong| at .*\.ts/);
  });

  it.each([
    [
      { data: { free_balance: 0, prepaid_balance: -1.5, total_balance: 0 } },
      "check  SOCIAL_API_TOKEN: the network's credit is $0.00, enough to look up 0 accounts: add credit",
    ],
    ["", "ok     SOCIAL_API_TOKEN: the network does not say how much credit is left"],
  ])("shows the network's credit: %j", async (body, start) => {
    sandbox.social.faults.add({
      when: ({ path }) => path === "/2/usage/credits",
      then: { status: 200, body: JSON.stringify(body) },
    });
    const { exitCode, lines } = await doctor();
    expect(lines.filter((line) => line.startsWith(start))).toHaveLength(1);
    expect(exitCode).toBe(0);
  });

  it("finds an endpoint of another cluster, and one that limits the accounts per call", async () => {
    sandbox.rpc.faults.add({ when: isMethod("getGenesisHash"), then: rpcResult(MAINNET) });
    sandbox.rpc.faults.add({
      when: (call) =>
        call.method === "getMultipleAccounts" && (call.params[0] as unknown[]).length > 10,
      then: { status: 413, body: "" },
    });
    const { exitCode, lines } = await doctor({
      SOLANA_RPC_URL: `${sandbox.rpc.url},${sandbox.secondRpc.url}`,
    });
    const ofEndpoints = lines.filter((line) => /SOLANA_RPC_URL: (?!the launch platf)/.test(line));
    expect(ofEndpoints).toHaveLength(2);
    for (const finding of [
      /^WRONG .* is on a private cluster, the others on mainnet-beta: use endpoints of/,
      /^WRONG .*; it does not answer calls for 100 accounts .status 413.: choose a plan without this limit$/,
    ])
      expect(ofEndpoints).toContainEqual(expect.stringMatching(finding));
    expect(exitCode).toBe(1);
  });

  it("finds an endpoint that does not say its cluster", async () => {
    sandbox.secondRpc.faults.add({
      when: isMethod("getGenesisHash"),
      then: rpcError({ code: -32601 }),
    });
    const { lines } = await doctor({
      SOLANA_RPC_URL: `${sandbox.rpc.url},${sandbox.secondRpc.url}`,
    });
    const finding =
      /^WRONG .* does not answer \(error -32601.*\): use one that supports getGenesis/;
    expect(lines).toContainEqual(expect.stringMatching(finding));
  });

  it("shows what it takes to go live: the endpoints' limits, and the balance", async () => {
    const urls = `${sandbox.rpc.url},${sandbox.secondRpc.url}`;
    const { lines } = await doctor({ SOLANA_RPC_URL: urls });
    const all = lines.join("\n");
    expect(all).toMatch(
      /ok {5}SOLANA_RPC_URL: \S+ is on a private cluster; it takes transactions of version 1, and answers calls for 100 accounts\n/,
    );
    expect(all).toMatch(/ok {5}FEE_PAYER_KEYPAIR: .* enough for \d+ collects/);
  });

  it("finds an endpoint that takes no transactions of version 1, and one that has stopped", async () => {
    sandbox.rpc.faults.add(REFUSES_VERSION_1);
    const data = [Buffer.alloc(40).toString("base64"), "base64"];
    sandbox.secondRpc.faults.add({
      when: ({ method, params }) =>
        method === "getMultipleAccounts" && (params[0] as unknown[]).length === 100,
      then: rpcResult({ context: { slot: 1 }, value: [{ lamports: 1, data }] }),
    });
    const urls = `${sandbox.rpc.url},${sandbox.secondRpc.url}`;
    const { exitCode, lines, last } = await doctor({ SOLANA_RPC_URL: urls });
    const all = lines.join("\n");
    expect(all).toMatch(
      /WRONG {2}SOLANA_RPC_URL: .*; it refuses transactions of version 1, which collects send: change the provider/,
    );
    expect(all).toMatch(/check {2}SOLANA_RPC_URL: .*, but it is behind, or a clock is wrong$/m);
    expect([exitCode, last]).toEqual([1, "At fault: SOLANA_RPC_URL"]);
  });

  it("shows the address of an id, and refuses what is none", async () => {
    const { id, address } = sandbox.account("creator");
    const show = (text: string) => resultOf(runMain(envWith({}), ["doctor", "--id", text]));
    expect((await show(id)).lines).toContain(
      `ok     ESCROW_PROGRAM_ID: the address of id ${id} is ${address}: compare it with the escrow program's`,
    );
    const { exitCode, line } = await show("creator");
    expect(line("WRONG  --id")).toContain("expected 1 to 20 decimal digits");
    expect(exitCode).toBe(1);
  });

  it.each([
    [{ status: 402, body: "{}" }, "WRONG  SOCIAL_API_TOKEN", "add credit in the"],
    [{ status: 404, body: "{}" }, "WRONG  SOCIAL_API_URL", "does not answer as expected (404)"],
    [
      { status: 429, body: "{}" },
      "check  SOCIAL_API_TOKEN",
      "the network allows no calls for 60 s",
    ],
  ] as const)("tells apart what the network answers: %j", async (then, start, fix) => {
    sandbox.social.faults.add({ then });
    expect((await doctor()).line(start)).toContain(fix);
  });
});

/** Starts a server with TLS until the test ends. Returns its URL. */
async function startTls(options: ServerOptions, host = "127.0.0.1"): Promise<string> {
  const tls = createServer(options).listen(0, host);
  await once(tls, "listening");
  onTestFinished(() => void tls.close());
  return `https://${host}:${(tls.address() as AddressInfo).port}`;
}

it.each<[string, () => Promise<string> | string, string, string]>([
  [
    "an untrusted certificate",
    () => startTls(UNTRUSTED),
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "NODE_EXTRA_CA_CERTS",
  ],
  ["an expired certificate", () => startTls(EXPIRED), "CERT_HAS_EXPIRED", "this machine's clock"],
  [
    "a certificate for another name",
    () => startTls(TRUSTED, "127.0.0.2"),
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "another name",
  ],
  ["an unknown host", () => "http://no-host.invalid", "ENOTFOUND", "no host of this name"],
  [
    "https at a port without TLS",
    () => sandbox.rpc.url.replace("http:", "https:"),
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "does not use TLS: correct the port, or use http://",
  ],
  [
    "http at a port with TLS",
    async () => (await startTls(UNTRUSTED)).replace("https:", "http:"),
    "(UND_ERR_SOCKET|ECONNRESET)",
    "if it uses TLS, use https://",
  ],
])("npm run doctor names a URL and the cause: %s", async (_mistake, urlOf, code, remedy) => {
  const { lines } = await doctor({ SOLANA_RPC_URL: await urlOf() });
  const problems = lines.filter((line) => /^(WRONG|check) /.test(line));
  expect(problems.join("\n")).toMatch(
    new RegExp(`SOLANA_RPC_URL: .* does not answer.* \\(${code}\\).*: .*${remedy}`),
  );
  for (const problem of problems) expect(problem).toContain("SOLANA_RPC_URL");
});

describeWithRedis("npm run doctor with Redis", () => {
  eachWithRedis();
  it("reports its version, and a policy that evicts keys", async () => {
    expect((await doctor({ REDIS_URL: server.url })).line("ok     REDIS_URL")).toMatch(
      /runs Redis \d+\..* accepts writes/,
    );
    await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    expect((await doctor({ REDIS_URL: server.url })).line("check  REDIS_URL")).toContain(
      "set maxmemory-policy to noeviction",
    );
  });
  it("accepts the nodes of a Redis Cluster", async () => {
    const cluster = await startRedisCluster();
    onTestFinished(cluster.stop);
    const { line } = await doctor({ REDIS_URL: cluster.url });
    expect(line("ok     REDIS_URL")).toContain("accepts writes");
  });
});
