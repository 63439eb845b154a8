/**
 * Measures the cost of the rate limit per request, by the number of known client addresses: in memory, in Redis,
 * and, for comparison, in graphql-rate-limit with its own store. Starts and stops its own redis-server.
 */
import { Registry } from "@prometheus-io/client";
import { getGraphQLRateLimiter, InMemoryStore } from "graphql-rate-limit";
import { createRateLimit } from "../src/http/rate-limit/rate-limit.ts";
import { createLogger } from "../src/observability/log.ts";
import { createRedis } from "../src/upstream/redis.ts";
import { startRedis } from "../test/support/redis-server.ts";

const LIMIT = { max: 20, windowSeconds: 3_600 };
const KNOWN_ADDRESSES = [1, 10_000, 1_000_000];
const MEASURED_REQUESTS = 20_000;
/** Requests in flight. */
const CONCURRENCY = 50;

/** Counts a request of `caller` and decides whether it is allowed. */
type Check = (caller: string) => Promise<unknown>;

const callerOf = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

/** Microseconds per request, with callers spread evenly over the known ones. */
async function measure(check: Check, known: number, count: number): Promise<number> {
  const startedAt = performance.now();
  await run(count, (i) => check(callerOf(Math.floor((i * 0.618_033_988_7 * known) % known))));
  return ((performance.now() - startedAt) * 1000) / count;
}

async function run(count: number, check: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await check(next++);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}

const server = await startRedis();
const redis = createRedis({
  urls: [new URL(server.url)],
  log: createLogger("warn"),
  registry: new Registry(),
});
await redis.ready;

const library = getGraphQLRateLimiter({
  identifyContext: (caller: string) => caller,
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- the class has no code of its own
  store: new InMemoryStore(),
});
const checkWithLibrary: Check = (context) =>
  library(
    {
      parent: undefined,
      args: {},
      context,
      info: { fieldName: "request" } as Parameters<typeof library>[0]["info"],
    },
    { max: LIMIT.max, window: `${LIMIT.windowSeconds}s` },
  );
const inMemory = createRateLimit(LIMIT);
const inRedis = createRateLimit(LIMIT, redis);

const stores: { name: string; check: Check; maxKnown: number; requests: number }[] = [
  {
    name: "memory",
    check: async (caller) => inMemory(caller, 1),
    maxKnown: Infinity,
    requests: MEASURED_REQUESTS,
  },
  {
    name: "Redis",
    check: async (caller) => inRedis(caller, 1),
    maxKnown: Infinity,
    requests: MEASURED_REQUESTS,
  },
  { name: "the library's own", check: checkWithLibrary, maxKnown: 10_000, requests: 500 },
];

console.log("| | known addresses | µs per request | ratio |\n|---|--:|--:|--:|");
for (const { name, check, maxKnown, requests } of stores) {
  await measure(check, 1, requests); // A warm-up.
  let first: number | undefined;
  let known = 0;
  for (const target of KNOWN_ADDRESSES.filter((count) => count <= maxKnown)) {
    const from = known;
    await run(target - from, (i) => check(callerOf(from + i)));
    known = target;
    const cost = await measure(check, known, requests);
    first ??= cost;
    console.log(
      `| ${name} | ${known.toLocaleString("en")} | ${cost.toFixed(1)} | ${(cost / first).toFixed(2)} |`,
    );
  }
}
const memory = String(await server.command("INFO", "memory"));
console.log(
  `\nRedis uses ${/used_memory_human:(\S+)/.exec(memory)?.[1]}, this process ${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB.`,
);
redis.close();
await server.stop();
