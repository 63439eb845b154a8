/** Starts the servers that bench/edge measures, and generates load with Debian's `wrk`. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Keypair } from "@solana/web3.js";
import manifest from "../../package.json" with { type: "json" };
import { temporaryFolder } from "../../test/support/temporary-folder.ts";
import { callerOf, repeat } from "../measure.ts";

export const folder = import.meta.dirname;
const started: ChildProcess[] = [];

/** A started program. */
export interface Server {
  readonly url: string;
  readonly child: ChildProcess;
}

/** Starts the gateway of a checkout, this one by default, on core 0, with Node's flags in `npm start`. */
export const startGateway = (env: Record<string, string>, checkout = `${folder}/../..`): Promise<Server> =>
  start(0, `${checkout}/src/main.ts`, env, manifest.scripts.start.match(/--\S+/g)!);

/** Starts a program on a CPU core; resolves once it prints its URL. Its output goes to a file, as in production. */
export async function start(
  core: number,
  file: string,
  env: Record<string, string> = {},
  flags: readonly string[] = [],
): Promise<Server> {
  const output = join(temporaryFolder(), "output");
  const child = spawn("taskset", ["-c", String(core), process.execPath, ...flags, file], {
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

const HANDLES = 1_000;

/** Runs a case of load.lua, as `client` sends it, on 50 connections. */
export async function load(
  url: string,
  { name, client = "curl" }: { name: string; client?: string },
  seconds: number,
) {
  const { stdout } = await promisify(execFile)("taskset", [
    ...["-c", "1", "wrk", "-t1", "-c50", `-d${seconds}s`, "--timeout", "30s"],
    ...["-s", `${folder}/load.lua`, url, "--", name, client, String(HANDLES)],
  ]);
  return JSON.parse(stdout.trim().split("\n").at(-1)!) as {
    requests: number;
    seconds: number;
    failed: number;
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

/** Waits until a server has finished what a load leaves behind: requests whose callers have gone. */
export async function untilIdle({ child }: Server): Promise<void> {
  for (let last = -1, used = cpuMicroseconds(child); used !== last; used = cpuMicroseconds(child)) {
    last = used;
    await sleep(100);
  }
}

export function stopAll(): void {
  for (const child of started) child.kill("SIGKILL");
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
  // As long as the reference: all cached handles would expire at once, in the middle of a run.
  SOCIAL_CACHE_SECONDS: "86400",
  PORT: "0",
});
