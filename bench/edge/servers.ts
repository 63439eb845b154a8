/** Starts the servers that are compared, and sends them the load of load.lua. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Keypair } from "@solana/web3.js";
import { temporaryFolder } from "../../test/support/temporary-folder.ts";
import { callerOf, repeat } from "../measure.ts";

const folder = import.meta.dirname;
const started: ChildProcess[] = [];
const HANDLES = 1_000;
const CLIENTS = [
  ["curl", 2.3],
  ["urql", 2.8],
  ["apollo", 2.8],
] as const;
/** V8 takes about 10 s of load to optimize a server. */
export const WARM_UP_SECONDS = 12;

/** A case of load.lua. `client`: in whose form the requests are. */
export interface Case {
  readonly name: string;
  readonly title: string;
  readonly client?: string;
  /** The ratio of CPU time that the gateway must reach. */
  readonly leastRatio?: number;
  readonly warmUpSeconds?: number;
}

export const CASES: readonly Case[] = [
  { name: "rest", title: "REST lookup with balance" },
  ...CLIENTS.map(([client, leastRatio]) => ({
    ...{ name: "balance", client, leastRatio },
    title: `GraphQL with balance, ${client}`,
  })),
  ...CLIENTS.map(([client]) => ({
    ...{ name: "plain", client, leastRatio: 0.33 },
    title: `GraphQL without balance, ${client}`,
  })),
  { name: "aliases", title: "100 aliased wallets with balance", leastRatio: 4 },
];

/** The most lookups a second that the default RPC plan carries. */
export const PLAN_RATE = 1_000;
export const CASES_AT_PLAN_RATE: readonly Case[] = [
  { name: "rest", title: `REST, ${PLAN_RATE} lookups a second` },
  { name: "balance", title: `GraphQL, ${PLAN_RATE} lookups a second` },
];

/** Each request has a document that is not cached. */
export const NEW_DOCUMENTS: Case = {
  name: "new",
  title: "GraphQL with balance, a new document each time",
};

export type Server = Awaited<ReturnType<typeof start>>;

/**
 * Starts a program on a CPU core; resolves once the program prints its URL. It writes to a file, as
 * in production.
 */
export async function start(
  core: number,
  file: string,
  env: Record<string, string> = {},
  { node = process.execPath, flags = [] }: { node?: string; flags?: readonly string[] } = {},
) {
  const output = join(temporaryFolder(), "output");
  const child = spawn("taskset", ["-c", String(core), node, ...flags, file], {
    env: { ...process.env, NODE_ENV: "production", ...env },
    stdio: ["ignore", openSync(output, "w"), "inherit"],
  });
  started.push(child);
  while (child.exitCode === null) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(readFileSync(output, "utf8"))?.[0];
    if (url) return { url, child };
    await sleep(100);
  }
  throw new Error(`${file} did not start`);
}

export const startUpstreams = (): Promise<Server> => start(1, `${folder}/upstreams.ts`);

export const startReference = (env: Record<string, string>): Promise<Server> =>
  start(0, `${folder}/reference.ts`, env);

/**
 * Starts a checkout's gateway, by default this checkout's, on core 0 as its `npm start` does: with
 * its Node and its flags.
 */
export function startGateway(
  env: Record<string, string>,
  { checkout = `${folder}/../..`, flags = [] }: { checkout?: string; flags?: string[] } = {},
): Promise<Server> {
  const { scripts } = JSON.parse(readFileSync(`${checkout}/package.json`, "utf8")) as {
    scripts: { start: string };
  };
  return start(0, `${checkout}/src/main.ts`, env, {
    node: `${checkout}/node_modules/.bin/node`,
    flags: [...scripts.start.match(/--\S+/g)!, ...flags],
  });
}

export function stopServers(): void {
  for (const child of started) child.kill("SIGKILL");
}

/** Sends the requests of a case on 50 connections: as many as are answered, or `rate` a second. */
export async function load(
  url: string,
  { name, client = "curl" }: Case,
  seconds: number,
  rate?: number,
) {
  const { stdout } = await promisify(execFile)("taskset", [
    ...["-c", "1", "wrk", "-t1", "-c50", `-d${seconds}s`, "--timeout", "30s"],
    ...["-s", `${folder}/load.lua`, url, "--", name, client, String(HANDLES)],
    ...(rate === undefined ? [] : [String(rate)]),
  ]);
  return JSON.parse(stdout.trim().split("\n").at(-1)!) as {
    requests: number;
    seconds: number;
    failed: number;
    p50Ms: number;
    p99Ms: number;
  };
}

/** Looks up every handle of load.lua, so that all are cached during the measurement. */
export const cacheHandles = (url: string): Promise<void> =>
  repeat({ count: HANDLES, inFlight: 20 }, async (i) => {
    const headers = { "x-forwarded-for": callerOf(i) };
    await (await fetch(`${url}/wallet/lookup?handle=name${i + 1}`, { headers })).text();
  });

/** A process's resident memory, in MB. */
export const rssMb = ({ pid }: ChildProcess): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024);

/** The CPU time that a process has used, in µs. Linux counts it in ticks of 10 ms. */
export function cpuMicroseconds({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [utime, stime] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14);
  return (Number(utime) + Number(stime)) * 10_000;
}

/**
 * Waits until a server has handled the requests whose callers disconnected at the end of a load.
 */
export async function untilIdle({ child }: Server): Promise<void> {
  for (let last = -1, used = cpuMicroseconds(child); used !== last; used = cpuMicroseconds(child)) {
    last = used;
    await sleep(100);
  }
}

/** The gateway's environment variables, with both upstreams at `url`. */
export const gatewayEnv = (url: string): Record<string, string> => ({
  SOCIAL_API_URL: url,
  SOCIAL_API_TOKEN: "token",
  SOLANA_RPC_URL: url,
  FEE_PAYER_KEYPAIR: JSON.stringify([...Keypair.generate().secretKey]),
  ESCROW_PROGRAM_ID: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  TRUST_PROXY: "127.0.0.1",
  // Benchmarks look up more new handles than the budget allows.
  SOCIAL_READS_PER_HOUR: "0",
  RPC_CALLS_PER_SECOND: "1000000",
  // The reference caches forever. With a shorter time, all cached handles would expire at once,
  // during a run.
  SOCIAL_CACHE_SECONDS: "86400",
  PORT: "0",
});
