/**
 * Measures the latency of lookups at fixed rates, compared with the server in reference.ts. Each request has a time at
 * which it should be sent, whether or not earlier ones are answered; its latency counts from then, so a server that
 * stalls is charged for all requests that it delays. So is a generator that is late, which has a column of its own. The
 * servers share one core, the load generator and the fake upstreams the other.
 *
 *     node bench/edge/tail.ts [seconds for each row]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import {
  cacheHandles,
  cpuMicroseconds,
  folder,
  gatewayEnv,
  load,
  moveToLoadCore,
  start,
  startGateway,
  stopAll,
  type Server,
} from "./servers.ts";

const SECONDS = Number(process.argv[2] ?? 5);
const WARM_UP_SECONDS = 3;
/** At full speed: V8 optimizes by the number of calls. */
const WARM_UPS = 4;
const RATES = [500, 1_000, 2_000];
const DELAYS_MS = [0, 80];
const CACHED_HANDLES = 1_000;
const CONNECTIONS = 500;

/**
 * Sends lookups at `rate` per second. Returns their latencies, and how late they were sent, in ms and ascending order.
 * Fails if one fails.
 */
async function sendAtRate(pool: Pool, rate: number, seconds: number) {
  const latencies: number[] = [];
  const delays: number[] = [];
  const failed: unknown[] = [];
  const open = new Set<Promise<void>>();
  const startedAt = performance.now();
  const count = rate * seconds;

  async function lookUp(dueAt: number): Promise<void> {
    delays.push(performance.now() - dueAt);
    const handle = `name${1 + Math.floor(Math.random() * CACHED_HANDLES)}`;
    const address = Array.from({ length: 3 }, () => Math.floor(Math.random() * 256)).join(".");
    const { statusCode, body } = await pool.request({
      method: "GET",
      path: `/wallet/lookup?handle=${handle}`,
      headers: { "x-forwarded-for": `10.${address}` },
    });
    await body.text();
    if (statusCode !== 200) throw new Error(`status ${statusCode}`);
    latencies.push(performance.now() - dueAt);
  }

  for (let sent = 0; sent < count;) {
    for (; sent < count && startedAt + (sent / rate) * 1000 <= performance.now(); sent++) {
      const request = lookUp(startedAt + (sent / rate) * 1000)
        .catch((error: unknown) => failed.push(error))
        .then(() => {
          open.delete(request);
        });
      open.add(request);
    }
    await sleep(1);
  }
  await Promise.all(open);
  if (failed.length > 0) throw new Error(`${failed.length} requests failed`, { cause: failed[0] });
  return { latencies: latencies.sort((a, b) => a - b), delays: delays.sort((a, b) => a - b) };
}

const percentile = (sorted: readonly number[], part: number) =>
  sorted[Math.ceil(sorted.length * part) - 1]!.toFixed(1);

moveToLoadCore();
console.log(
  "| chain answers after, ms | requests/s | server | p50 ms | p99 ms | p99.9 ms | sent late, p99 ms | chain calls/s | CPU µs per request |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|",
);
for (const delayMs of DELAYS_MS) {
  try {
    const upstreams = await start(1, `${folder}/upstreams.ts`, { CHAIN_DELAY_MS: String(delayMs) });
    const env = gatewayEnv(upstreams.url);
    const servers: [string, Server][] = [
      ["reference", await start(0, `${folder}/reference.ts`, env)],
      ["gateway", await startGateway(env)],
    ];
    const chainCalls = async () =>
      ((await (await fetch(`${upstreams.url}/counts`)).json()) as { chain: number }).chain;
    for (const [, { url }] of servers) {
      await cacheHandles(url, CACHED_HANDLES);
      for (let i = 0; i < WARM_UPS; i++)
        await load(url, { name: "rest" }, WARM_UP_SECONDS, CACHED_HANDLES, CONNECTIONS);
    }
    for (const rate of RATES) {
      for (const [name, { url, child }] of servers) {
        const pool = new Pool(url, { connections: CONNECTIONS });
        await sendAtRate(pool, rate, WARM_UP_SECONDS);
        const [calls, cpu] = [await chainCalls(), cpuMicroseconds(child)];
        const { latencies, delays } = await sendAtRate(pool, rate, SECONDS);
        const cells = [
          ...[delayMs, rate, name],
          ...[0.5, 0.99, 0.999].map((part) => percentile(latencies, part)),
          percentile(delays, 0.99),
          Math.round(((await chainCalls()) - calls) / SECONDS),
          ((cpuMicroseconds(child) - cpu) / latencies.length).toFixed(0),
        ];
        console.log(`| ${cells.join(" | ")} |`);
        await pool.close();
      }
    }
  } finally {
    stopAll();
  }
}
