/** Starts the servers that bench/edge measures, and generates load with Debian's `wrk`. */
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Keypair } from "@solana/web3.js";
import manifest from "../../package.json" with { type: "json" };
import { temporaryFolder } from "../../test/support/temporary-folder.ts";

export const folder = import.meta.dirname;
const started: ChildProcess[] = [];

/** A started program. */
export interface Server {
  readonly url: string;
  readonly child: ChildProcess;
  readonly output: () => string;
}

/** Node's flags in `npm start`. */
export const GATEWAY_FLAGS = manifest.scripts.start.split(" ").filter((word) => word.startsWith("--"));

/** Starts the gateway on a CPU core, as `npm start` and the image do. */
export const startGateway = (env: Record<string, string>, core = 0): Promise<Server> =>
  start(core, `${folder}/../../src/main.ts`, env, GATEWAY_FLAGS);

/** Starts a program on a CPU core; resolves once it prints its URL. Its output goes to a file, as in production. */
export async function start(
  core: number,
  file: string,
  env: Record<string, string> = {},
  flags: readonly string[] = [],
): Promise<Server> {
  const path = join(temporaryFolder(), "output");
  const output = () => readFileSync(path, "utf8");
  const child = spawn("taskset", ["-c", String(core), process.execPath, ...flags, file], {
    env: { ...process.env, NODE_ENV: "production", ...env },
    stdio: ["ignore", openSync(path, "w"), "inherit"],
  });
  started.push(child);
  while (child.exitCode === null) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output())?.[0];
    if (url) return { url, child, output };
    await sleep(100);
  }
  throw new Error(`${file} did not start`);
}

export interface Result {
  readonly requests: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
  readonly refused: number;
}

/** Runs a case of load.lua with the first `handles` handles, as `client` sends it. */
export async function load(
  url: string,
  { name, client = "curl" }: { name: string; client?: string },
  seconds: number,
  handles: number,
  connections = 50,
): Promise<Result> {
  const { stdout } = await promisify(execFile)("taskset", [
    ...["-c", "1", "wrk", "-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "30s", "--latency"],
    ...["-s", `${folder}/load.lua`, url, "--", name, client, String(handles)],
  ]);
  return JSON.parse(stdout.trim().split("\n").at(-1)!) as Result;
}

/** Runs a case of load.lua at full speed. V8 takes about 10 s of load to optimize a server. */
export const warmUp = (
  url: string,
  one: { name: string; client?: string },
  handles: number,
): Promise<Result> => load(url, one, 12, handles);

/** Looks every handle up once, 20 at a time, so that all are cached during the measurement. */
export async function cacheHandles(url: string, count: number): Promise<void> {
  let last = 0;
  async function lookUp(): Promise<void> {
    while (last < count) {
      const i = ++last;
      const headers = { "x-forwarded-for": `172.${16 + (i >> 14)}.${(i >> 6) & 255}.${i & 63}` };
      await (await fetch(`${url}/wallet/lookup?handle=name${i}`, { headers })).text();
    }
  }
  await Promise.all(Array.from({ length: 20 }, lookUp));
}

/** Moves this process to the core of the load generator and the fake upstreams. */
export function moveToLoadCore(): void {
  execFileSync("taskset", ["-acp", "1", String(process.pid)]);
}

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
