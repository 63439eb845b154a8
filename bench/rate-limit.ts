/**
 * Measures the cost of the rate limit per request, in memory and in Redis: by the number of known
 * client addresses, and by how many earlier requests of one address are in the window. Starts and
 * stops its own redis-server.
 */
import { Registry } from "@prometheus-io/client";
import { createRateLimit, type RateLimit } from "../src/http/rate-limit/rate-limit.ts";
import { createLogger } from "../src/observability/log.ts";
import { createRedis } from "../src/store/redis.ts";
import { startRedis } from "../test/support/redis-server.ts";
import { callerOf, printHead, printRow, repeat, timed } from "./measure.ts";

const LIMIT = { rateLimitMax: 20, rateLimitWindowSeconds: 3_600 };
const KNOWN_ADDRESSES = [1, 10_000, 1_000_000];
const REQUESTS = 20_000;
const IN_FLIGHT = 50;
const LARGE_LIMIT = { rateLimitMax: 1_000_000, rateLimitWindowSeconds: 3_600 };
const EARLIER_REQUESTS = [10, 10_000, 40_000, 990_000];
/** Few, because each makes the number of earlier requests grow. */
const LATER_REQUESTS = 1_000;

/** Returns the microseconds per request. The requests are spread evenly over the known callers. */
async function measure(limit: RateLimit, known: number): Promise<number> {
  const callers = Array.from({ length: REQUESTS }, (_, i) =>
    callerOf(Math.floor((i * 0.618_033_988_7 * known) % known)),
  );
  const ms = await timed(() =>
    repeat({ count: REQUESTS, inFlight: IN_FLIGHT }, (i) => limit(callers[i]!, 1)),
  );
  return (ms * 1_000) / REQUESTS;
}

/** Returns the CPU time per request of an address, in microseconds: of this process, of Redis. */
async function measureLater(limit: RateLimit, caller: string): Promise<readonly number[]> {
  const redisBefore = await redisCpu();
  const before = process.cpuUsage();
  await repeat({ count: LATER_REQUESTS, inFlight: IN_FLIGHT }, () => limit(caller, 1));
  const { user, system } = process.cpuUsage(before);
  return [user + system, (await redisCpu()) - redisBefore].map((each) => each / LATER_REQUESTS);
}

/** Returns Redis's CPU time so far, in microseconds. */
async function redisCpu(): Promise<number> {
  const info = String(await server.command("INFO", "cpu"));
  const seconds = [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)];
  return seconds.reduce((sum, [, each]) => sum + Number(each), 0) * 1_000_000;
}

const server = await startRedis();
const redis = createRedis({
  urls: [new URL(server.url)],
  log: createLogger("warn"),
  registry: new Registry(),
  answerTimeoutMs: 60_000,
});
await redis.ready;
printHead("store", "known addresses", "µs per request");
for (const [store, limit] of [
  ["memory", createRateLimit(LIMIT)],
  ["Redis", createRateLimit(LIMIT, redis)],
] as const) {
  await measure(limit, 1); // A warm-up.
  for (const known of KNOWN_ADDRESSES) {
    await repeat({ count: known, inFlight: IN_FLIGHT }, (i) => limit(callerOf(i), 1));
    printRow(store, known.toLocaleString("en"), (await measure(limit, known)).toFixed(1));
  }
}
printHead("store", "earlier requests", "CPU µs per request", "of Redis", "of 10 earlier requests");
for (const [store, limit] of [
  ["memory", createRateLimit(LARGE_LIMIT)],
  ["Redis", createRateLimit(LARGE_LIMIT, redis)],
] as const) {
  await measureLater(limit, "a warm-up");
  let least: number | undefined;
  for (const earlier of EARLIER_REQUESTS) {
    const caller = `${earlier} earlier requests`;
    await limit(caller, earlier);
    const [here = 0, inRedis = 0] = await measureLater(limit, caller);
    const both = here + inRedis;
    least ??= both;
    const cells = [here.toFixed(1), inRedis.toFixed(1), (both / least).toFixed(2)];
    printRow(store, earlier.toLocaleString("en"), ...cells);
  }
}
redis.close();
await server.stop();
