/**
 * Measures the latency of lookups at fixed rates, compared with the server in reference.ts. Each request has a time at
 * which it should be sent, whether or not earlier ones are answered; its latency counts from then, so a server that
 * stalls is charged for all requests that it delays. So are a generator, a fake upstream and a machine that stall.
 * Therefore a column shows how late requests were sent, another the server's own time by its packets (from a request
 * to its response, without its chain call), and a row how soon a node:http server answers that does nothing. The
 * servers share one core, the load generator and the fake upstreams the other.
 *
 *     node bench/edge/tail.ts [seconds for each row]
 */
import {
  cacheHandles,
  cpuMicroseconds,
  folder,
  gatewayEnv,
  moveToLoadCore,
  start,
  startGateway,
  stopAll,
  warmUp,
  type Server,
} from "./servers.ts";
import { createOpenLoop } from "./open-loop.ts";
import { ownTimes, recordPackets } from "./packets.ts";

const SECONDS = Number(process.argv[2] ?? 30);
const WARM_UP_SECONDS = 10;
const RATES = [500, 1_000, 2_000];
const DELAYS_MS = [0, 80];
const CACHED_HANDLES = 1_000;

const toLookup = () => `/wallet/lookup?handle=name${1 + Math.floor(Math.random() * CACHED_HANDLES)}`;

const percentile = (sorted: readonly number[], part: number) =>
  sorted[Math.ceil(sorted.length * part) - 1]!.toFixed(1);

moveToLoadCore();
console.log(
  "| chain answers after, ms | requests/s | server | p50 ms | p99 ms | p99.9 ms | sent late, p99 ms | own time: p50 ms | p99 ms | p99.9 ms | chain calls/s | CPU µs per request |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
);
for (const delayMs of DELAYS_MS) {
  try {
    const upstreams = await start(1, `${folder}/upstreams.ts`, { CHAIN_DELAY_MS: String(delayMs) });
    const env = gatewayEnv(upstreams.url);
    const reference = await start(0, `${folder}/reference.ts`, env);
    const gateway = await startGateway(env);
    const servers: [string, Server, () => string][] = [
      ["node:http", await start(0, `${folder}/upstreams.ts`), () => "/counts"],
      ["reference", reference, toLookup],
      ["gateway", gateway, toLookup],
    ];
    const chainCalls = async () =>
      ((await (await fetch(`${upstreams.url}/counts`)).json()) as { chain: number }).chain;
    for (const { url } of [reference, gateway]) {
      await cacheHandles(url, CACHED_HANDLES);
      await warmUp(url, { name: "rest" }, CACHED_HANDLES);
    }
    for (const rate of RATES) {
      for (const [name, { url, child }, toPath] of servers) {
        const clients = createOpenLoop(url);
        await clients.send({ rate, seconds: WARM_UP_SECONDS, toPath });
        const stopRecording = await recordPackets([url, upstreams.url]);
        const [calls, cpu] = [await chainCalls(), cpuMicroseconds(child)];
        const { answered, sent } = await clients.send({ rate, seconds: SECONDS, toPath });
        const cpuPerRequest = (cpuMicroseconds(child) - cpu) / answered.length;
        const callsPerSecond = ((await chainCalls()) - calls) / SECONDS;
        const packets = await stopRecording();
        const own = toPath === toLookup ? ownTimes(packets, url, upstreams.url) : [];
        if (toPath === toLookup && own.length !== answered.length) throw new Error("packets are missing");
        clients.close();
        const percentiles = (times: readonly number[]) =>
          [0.5, 0.99, 0.999].map((part) => (times.length > 0 ? percentile(times, part) : ""));
        const cells = [
          ...[delayMs, rate, name, ...percentiles(answered), percentile(sent, 0.99), ...percentiles(own)],
          ...[callsPerSecond, cpuPerRequest].map((number) => number.toFixed(0)),
        ];
        console.log(`| ${cells.join(" | ")} |`);
      }
    }
  } finally {
    stopAll();
  }
}
