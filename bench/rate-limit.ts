/**
 * Measures the cost of the rate limit per request, by the number of known client addresses, in
 * memory and in Redis. Starts and stops its own redis-server.
 */
import { Registry } from "@prometheus-io/client";
import { createRateLimit, type RateLimit } from "../src/http/rate-limit/rate-limit.ts";
import { createLogger } from "../src/observability/log.ts";
import { createRedis } from "../src/store/redis.ts";
import { startRedis } from "../test/support/redis-server.ts";
import { callerOf, printHead, printRow, repeat, timed } from "./measure.ts";

const LIMIT = { max: 20, windowSeconds: 3_600 };
const KNOWN_ADDRESSES = [1, 10_000, 1_000_000];
const REQUESTS = 20_000;
const IN_FLIGHT = 50;

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
redis.close();
await server.stop();
