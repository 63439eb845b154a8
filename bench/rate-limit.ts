/**
 * What the rate limit costs a request, by how many addresses are known: in memory, in Redis, and, to
 * compare, graphql-rate-limit with the store that it brings. Starts and stops its own redis-server.
 */
import { Registry } from "@prometheus-io/client";
import { getGraphQLRateLimiter, InMemoryStore } from "graphql-rate-limit";
import { createRateLimit } from "../src/http/rate-limit/rate-limit.ts";
import { createLogger } from "../src/observability/log.ts";
import { createRedis } from "../src/upstream/redis.ts";
import { startRedis } from "../test/support/redis-server.ts";

const LIMIT = { max: 20, windowSeconds: 3_600 };
const KNOWN = [1, 10_000, 1_000_000];
const MEASURED = 20_000;
/** Requests under way at once. */
const CONCURRENCY = 50;

type Ask = (caller: string) => Promise<unknown>;

const callerOf = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

/** Microseconds a request, of callers picked evenly among those that are known. */
async function measure(ask: Ask, known: number, count: number): Promise<number> {
  const startedAt = performance.now();
  await run(count, (i) => ask(callerOf(Math.floor((i * 0.618_033_988_7 * known) % known))));
  return ((performance.now() - startedAt) * 1000) / count;
}

async function run(count: number, ask: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await ask(next++);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}

const server = await startRedis();
const redis = createRedis({
  url: new URL(server.url),
  log: createLogger("warn"),
  registry: new Registry(),
});
await redis.ready;

const library = getGraphQLRateLimiter({
  identifyContext: (caller: string) => caller,
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- the class has no code of its own
  store: new InMemoryStore(),
});
const askLibrary: Ask = (context) =>
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

const ways: { name: string; ask: Ask; mostKnown: number; measured: number }[] = [
  { name: "in memory", ask: (caller) => inMemory(caller, 1), mostKnown: Infinity, measured: MEASURED },
  { name: "in Redis", ask: (caller) => inRedis(caller, 1), mostKnown: Infinity, measured: MEASURED },
  { name: "the library's own store", ask: askLibrary, mostKnown: 10_000, measured: 500 },
];

console.log("| | known addresses | µs per request | ratio |\n|---|--:|--:|--:|");
for (const { name, ask, mostKnown, measured } of ways) {
  await measure(ask, 1, measured); // The code is warm from here on.
  let first: number | undefined;
  let known = 0;
  for (const target of KNOWN.filter((count) => count <= mostKnown)) {
    const from = known;
    await run(target - from, (i) => ask(callerOf(from + i)));
    known = target;
    const cost = await measure(ask, known, measured);
    first ??= cost;
    console.log(
      `| ${name} | ${known.toLocaleString("en")} | ${cost.toFixed(1)} | ${(cost / first).toFixed(2)} |`,
    );
  }
}
const memory = String(await server.command("INFO", "memory"));
console.log(
  `\nRedis holds ${/used_memory_human:(\S+)/.exec(memory)?.[1]} then, this process ${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB.`,
);
redis.close();
await server.stop();
