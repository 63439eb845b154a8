/**
 * Lookups through the whole edge, against a service written by hand and against Mercurius: see reference.ts.
 * Needs Debian's `wrk`. The servers share one core, the load and the upstreams' doubles the other; the
 * rounds of the two servers alternate.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { Keypair } from "@solana/web3.js";

const ROUNDS = Number(process.argv[2] ?? 3);
const SECONDS = Number(process.argv[3] ?? 4);
const CONNECTIONS = 50;
const KNOWN_HANDLES = 1_000;

const CASES = [
  { name: "rest", title: "REST lookup with a live balance" },
  { name: "balance", title: "GraphQL `wallet` with balance" },
  { name: "plain", title: "GraphQL `wallet` without balance" },
  { name: "aliases", title: "100 aliased wallets with balance" },
];

const folder = import.meta.dirname;
const started: ChildProcess[] = [];

/** Starts a program on a core, and gives the address that it prints. */
async function start(
  core: number,
  file: string,
  env: Record<string, string> = {},
): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn("taskset", ["-c", String(core), process.execPath, file], {
    env: { ...process.env, NODE_ENV: "production", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  for await (const chunk of child.stdout) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(String(chunk))?.[0];
    if (url) {
      child.stdout.resume();
      return { url, child };
    }
  }
  throw new Error(`${file} did not start`);
}

interface Result {
  readonly requests: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
  readonly refused: number;
}

function load(url: string, name: string, seconds: number): Result {
  const output = execFileSync("taskset", [
    "-c",
    "1",
    "wrk",
    "-t1",
    `-c${CONNECTIONS}`,
    `-d${seconds}s`,
    "--latency",
    "-s",
    `${folder}/load.lua`,
    url,
    "--",
    name,
    String(KNOWN_HANDLES),
  ]);
  return JSON.parse(String(output).trim().split("\n").at(-1)!) as Result;
}

/** Has a server find every handle once, so that none is found while it is measured. */
async function learnHandles(url: string): Promise<void> {
  for (let i = 1; i <= KNOWN_HANDLES; i++) {
    const headers = { "x-forwarded-for": `172.${16 + (i >> 14)}.${(i >> 6) & 255}.${i & 63}` };
    await (await fetch(`${url}/wallet/lookup?handle=name${i}`, { headers })).text();
  }
}

const rss = ({ pid }: ChildProcess) =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(String(execFileSync("cat", [`/proc/${pid}/status`])))![1]) / 1024);
const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

try {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const env = {
    SOCIAL_API_URL: upstreams.url,
    SOCIAL_API_TOKEN: "token",
    SOLANA_RPC_URL: upstreams.url,
    FEE_PAYER_KEYPAIR: JSON.stringify([...Keypair.generate().secretKey]),
    ESCROW_PROGRAM_ID: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
    TRUST_PROXY: "127.0.0.1",
    PORT: "0",
  };
  const gateway = await start(0, `${folder}/../../src/main.ts`, env);
  const bare = await start(0, `${folder}/reference.ts`, env);
  const limiting = await start(0, `${folder}/reference.ts`, { ...env, WITH_LIMIT: "1" });
  for (const { url } of [gateway, bare, limiting]) await learnHandles(url);
  const counts = async () =>
    (await (await fetch(`${upstreams.url}/counts`)).json()) as { social: number; chain: number };

  console.log(
    "| | server | requests a second | ratio | p50 ms | p99 ms | chain calls a request | refused | memory MB |\n|---|---|--:|--:|--:|--:|--:|--:|--:|",
  );
  for (const { name, title } of CASES.filter((one) => !process.argv[4] || one.name === process.argv[4])) {
    const servers = [
      { server: "by hand", ...bare, rates: [] as number[], results: [] as Result[], calls: 0 },
      {
        server: "by hand, with @fastify/rate-limit",
        ...limiting,
        rates: [] as number[],
        results: [] as Result[],
        calls: 0,
      },
      { server: "gateway", ...gateway, rates: [] as number[], results: [] as Result[], calls: 0 },
    ];
    for (const { url } of servers) load(url, name, 3); // to warm up
    for (let round = 0; round < ROUNDS; round++) {
      for (const server of servers) {
        const before = await counts();
        const result = load(server.url, name, SECONDS);
        server.calls += (await counts()).chain - before.chain;
        server.results.push(result);
        server.rates.push(result.requests / result.seconds);
      }
    }
    const base = median(servers[0]!.rates);
    for (const { server, rates, results, calls, child } of servers) {
      const requests = results.reduce((sum, result) => sum + result.requests, 0);
      const refused = results.reduce((sum, result) => sum + result.refused + result.errors, 0);
      const rate = median(rates);
      console.log(
        `| ${title} | ${server} | ${rate.toFixed(0)} | ${(rate / base).toFixed(2)} | ${median(results.map(({ p50 }) => p50))} | ${median(results.map(({ p99 }) => p99))} | ${(calls / requests).toFixed(3)} | ${refused} | ${rss(child)} |`,
      );
    }
  }
} finally {
  for (const child of started) child.kill("SIGKILL");
}
