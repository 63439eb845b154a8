/**
 * Compares lookups over HTTP at this gateway, at the server in reference.ts and, if a folder is
 * given, at the gateway of another checkout. Needs Debian's `wrk`. The servers run on one core, the
 * load generator and the fake upstreams on another. A round measures one server after the other.
 * CPU time counts only the server's process, so other load on the machine affects it less. A ratio
 * above 1 is better than the reference. Fails if the servers' answers differ.
 *
 *     node bench/edge/edge.ts [rounds] [seconds] [rows whose title contains this] [another checkout's folder]
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual, promisify } from "node:util";
import { Keypair } from "@solana/web3.js";
import manifest from "../../package.json" with { type: "json" };
import { temporaryFolder } from "../../test/support/temporary-folder.ts";
import { callerOf, median, printHead, printRow, repeat } from "../measure.ts";

const folder = import.meta.dirname;
const started: ChildProcess[] = [];
const [rounds = 3, seconds = 4, part = "", otherCheckout] = process.argv.slice(2);
/** V8 takes about 10 s of load to optimize a server. */
const WARM_UP_SECONDS = 12;
const CLIENTS = ["curl", "urql", "apollo"];

const CASES = [
  { name: "rest", title: "REST lookup with balance" },
  ...CLIENTS.map((client) => ({
    name: "balance",
    client,
    title: `GraphQL with balance, ${client}`,
  })),
  ...CLIENTS.map((client) => ({
    name: "plain",
    client,
    title: `GraphQL without balance, ${client}`,
  })),
  { name: "aliases", title: "100 aliased wallets with balance" },
].filter(({ title }) => title.includes(part));

const HANDLES = 1_000;

/** The measurement of one server in one round. `cpu` is in µs; `calls` are calls to the chain. */
type Round = Awaited<ReturnType<typeof load>> & { cpu: number; calls: number };

const rateOf = (rounds: readonly Round[]) =>
  median(rounds.map((round) => round.requests / round.seconds));
const cpuOf = (rounds: readonly Round[]) =>
  median(rounds.map((round) => round.cpu / round.requests));

/** Throws unless all servers give equal answers to lookups over REST and GraphQL. */
async function compareAnswers(urls: readonly string[]): Promise<void> {
  const fields = "handle socialId address balance { vault pda total }";
  const query = `query ($h: String!) { wallet(handle: $h) { ${fields} } w: wallet(handle: "name2") { ${fields} } }`;
  const search = new URLSearchParams({ query, variables: '{"h":"name1"}' });
  for (const path of ["/wallet/lookup?handle=name1", `/graphql?${search}`]) {
    const answers: unknown[] = [];
    for (const url of urls) answers.push(await (await fetch(url + path)).json());
    if (answers.some((answer) => !isDeepStrictEqual(answer, answers[0])))
      throw new Error(`the answers to ${path} differ: ${JSON.stringify(answers)}`);
  }
}

type Server = Awaited<ReturnType<typeof start>>;

/**
 * Starts a checkout's gateway, by default this checkout's, on core 0 with the Node flags of `npm
 * start`.
 */
const startGateway = (env: Record<string, string>, checkout = `${folder}/../..`): Promise<Server> =>
  start(0, `${checkout}/src/main.ts`, env, manifest.scripts.start.match(/--\S+/g)!);

/**
 * Starts a program on a CPU core; resolves once the program prints its URL. It writes to a file, as
 * in production.
 */
async function start(
  core: number,
  file: string,
  env: Record<string, string> = {},
  flags: readonly string[] = [],
) {
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

/** Sends the requests of a case of load.lua on 50 connections, in the form that `client` uses. */
async function load(
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
const cacheHandles = (url: string): Promise<void> =>
  repeat({ count: HANDLES, inFlight: 20 }, async (i) => {
    const headers = { "x-forwarded-for": callerOf(i) };
    await (await fetch(`${url}/wallet/lookup?handle=name${i + 1}`, { headers })).text();
  });

/** A process's resident memory, in MB. */
const rssMb = ({ pid }: ChildProcess): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024);

/** The CPU time that a process has used, in µs. Linux counts it in ticks of 10 ms. */
function cpuMicroseconds({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [utime, stime] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14);
  return (Number(utime) + Number(stime)) * 10_000;
}

/**
 * Waits until a server has handled the requests whose callers disconnected at the end of a load.
 */
async function untilIdle({ child }: Server): Promise<void> {
  for (let last = -1, used = cpuMicroseconds(child); used !== last; used = cpuMicroseconds(child)) {
    last = used;
    await sleep(100);
  }
}

/** The gateway's environment variables, with both upstreams at `url`. */
const gatewayEnv = (url: string): Record<string, string> => ({
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

try {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const env = gatewayEnv(upstreams.url);
  const servers = [
    { title: "reference", server: await start(0, `${folder}/reference.ts`, env) },
    ...(otherCheckout
      ? [{ title: "other gateway", server: await startGateway(env, otherCheckout) }]
      : []),
    { title: "gateway", server: await startGateway(env) },
  ];
  const urls = servers.map(({ server }) => server.url);
  await compareAnswers(urls);
  for (const url of urls) await cacheHandles(url);
  const chainCalls = async () => Number(await (await fetch(`${upstreams.url}/chain-calls`)).text());

  printHead(
    ...["", "server", "requests/s", "ratio", "CPU µs per request", "ratio"],
    ...["chain calls per request", "failed", "memory MB"],
  );
  for (const one of CASES) {
    const measured = servers.map((server) => ({ ...server, rounds: [] as Round[] }));
    for (const { server } of servers) {
      await load(server.url, one, WARM_UP_SECONDS);
      await untilIdle(server);
    }
    for (let round = 0; round < Number(rounds); round++) {
      for (const { server, rounds } of measured) {
        const [calls, cpu] = [await chainCalls(), cpuMicroseconds(server.child)];
        const result = await load(server.url, one, Number(seconds));
        const used = {
          cpu: cpuMicroseconds(server.child) - cpu,
          calls: (await chainCalls()) - calls,
        };
        rounds.push({ ...result, ...used });
        await untilIdle(server);
      }
    }
    const [reference] = measured;
    for (const { title, server, rounds } of measured) {
      printRow(
        ...[one.title, title],
        ...[rateOf(rounds).toFixed(0), (rateOf(rounds) / rateOf(reference!.rounds)).toFixed(2)],
        ...[cpuOf(rounds).toFixed(1), (cpuOf(reference!.rounds) / cpuOf(rounds)).toFixed(2)],
        median(rounds.map(({ calls, requests }) => calls / requests)).toFixed(3),
        rounds.reduce((sum, { failed }) => sum + failed, 0),
        rssMb(server.child),
      );
    }
  }
} finally {
  for (const child of started) child.kill("SIGKILL");
}
