/**
 * The gateway as what it knows grows: lookups with balances of 1 to 1,000,000 handles, always from a million
 * addresses; then one and two replicas on one Redis. Needs Debian's `wrk` and `redis-server`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "../../test/support/redis-server.ts";
import { environment, folder, learnHandles, load, rss, start, stopAll } from "./servers.ts";

const SECONDS = 6;
const MAIN = `${folder}/../../src/main.ts`;

try {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const env = environment(upstreams.url);
  const gateway = await start(0, MAIN, env);

  console.log("| handles asked for | requests/s | ratio | p50 ms | memory MB |\n|--:|--:|--:|--:|--:|");
  let first: number | undefined;
  for (const handles of [1, 100, 10_000, 1_000_000]) {
    if (handles <= 10_000) await learnHandles(gateway.url, handles);
    await load(gateway.url, "rest", SECONDS, handles);
    const { requests, seconds, p50 } = await load(gateway.url, "rest", SECONDS, handles);
    const rate = requests / seconds;
    first ??= rate;
    console.log(
      `| ${handles.toLocaleString("en")} | ${rate.toFixed(0)} | ${(rate / first).toFixed(2)} | ${p50} | ${rss(gateway.child)} |`,
    );
  }

  console.log("\n| handles seen | in use MB | memory MB |\n|--:|--:|--:|");
  const seeing = await start(0, `${folder}/watched.ts`, { ...env, NODE_OPTIONS: "--expose-gc" });
  let seen = 0;
  for (const handles of [100_000, 200_000, 500_000, 1_000_000]) {
    await seeHandles(seeing.url, seen, handles);
    seen = handles;
    await load(seeing.url, "plain", SECONDS, 1_000); // from a million addresses
    const heaps = () => [...seeing.output().matchAll(/^heap (\d+)$/gm)].map(([, heap]) => heap);
    const known = heaps().length;
    seeing.child.kill("SIGUSR2");
    while (heaps().length === known) await sleep(100);
    console.log(`| ${handles.toLocaleString("en")} | ${heaps().at(-1)} | ${rss(seeing.child)} |`);
  }
  seeing.child.kill("SIGKILL");

  const redis = await startRedis();
  console.log("\n| replicas | Redis | requests/s | ratio |\n|--:|---|--:|--:|");
  let alone: number | undefined;
  for (const [replicas, redisUrl] of [
    [1, ""],
    [1, redis.url],
    [2, redis.url],
  ] as const) {
    const servers = [];
    for (let i = 0; i < replicas; i++) servers.push(await start(i, MAIN, { ...env, REDIS_URL: redisUrl }));
    for (const { url } of servers) await learnHandles(url, 100);
    for (const { url } of servers) await load(url, "rest", 3, 100);
    const results = await Promise.all(servers.map(({ url }) => load(url, "rest", SECONDS, 100)));
    const rate = results.reduce((sum, { requests, seconds }) => sum + requests / seconds, 0);
    alone ??= rate;
    console.log(
      `| ${replicas} | ${redisUrl ? "yes" : "no"} | ${rate.toFixed(0)} | ${(rate / alone).toFixed(2)} |`,
    );
    for (const { child } of servers) child.kill("SIGKILL");
  }
  await redis.stop();
} finally {
  stopAll();
}

/** Asks for the addresses of handles, 100 in an operation, some operations at once. */
async function seeHandles(url: string, from: number, to: number): Promise<void> {
  const query = "query ($handles: [String!]!) { wallets(handles: $handles) { address } }";
  let next = from;
  async function ask(): Promise<void> {
    while (next < to) {
      const first = next;
      next += 100;
      const handles = Array.from({ length: 100 }, (_, i) => `seen${first + i}`);
      const caller = `172.${16 + ((first / 100) >> 14)}.${((first / 100) >> 6) & 255}.${(first / 100) & 63}`;
      const answer = await fetch(`${url}/graphql`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-forwarded-for": caller },
        body: JSON.stringify({ query, variables: { handles } }),
      });
      const { errors } = (await answer.json()) as { errors?: unknown };
      if (errors) throw new Error(`wallets were refused: ${JSON.stringify(errors)}`);
    }
  }
  await Promise.all(Array.from({ length: 4 }, ask));
}
