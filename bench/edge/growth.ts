/**
 * Measures the gateway as its caches grow: lookups with balances of 1 to 1,000,000 handles, from a million
 * client addresses; then one and two replicas that share a Redis. Needs Debian's `wrk` and `redis-server`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "../../test/support/redis-server.ts";
import {
  cacheHandles,
  folder,
  GATEWAY_FLAGS,
  gatewayEnv,
  load,
  rssMb,
  start,
  startGateway,
  stopAll,
} from "./servers.ts";

const SECONDS = 6;

try {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const env = gatewayEnv(upstreams.url);
  const gateway = await startGateway(env);

  console.log("| requested handles | requests/s | ratio | p50 ms | memory MB |\n|--:|--:|--:|--:|--:|");
  let first: number | undefined;
  for (const handles of [1, 100, 10_000, 1_000_000]) {
    if (handles <= 10_000) await cacheHandles(gateway.url, handles);
    await load(gateway.url, { name: "rest" }, SECONDS, handles);
    const { requests, seconds, p50 } = await load(gateway.url, { name: "rest" }, SECONDS, handles);
    const rate = requests / seconds;
    first ??= rate;
    console.log(
      `| ${handles.toLocaleString("en")} | ${rate.toFixed(0)} | ${(rate / first).toFixed(2)} | ${p50} | ${rssMb(gateway.child)} |`,
    );
  }

  console.log("\n| handles so far | heap in use MB | memory MB |\n|--:|--:|--:|");
  const withHeapOutput = `${folder}/gateway-with-heap-output.ts`;
  const observed = await start(0, withHeapOutput, env, [...GATEWAY_FLAGS, "--expose-gc"]);
  let lookedUp = 0;
  for (const handles of [100_000, 200_000, 500_000, 1_000_000]) {
    await lookUpHandles(observed.url, lookedUp, handles);
    lookedUp = handles;
    await load(observed.url, { name: "plain" }, SECONDS, 1_000); // Fills the rate limit's store.
    const heaps = () => [...observed.output().matchAll(/^heap (\d+)$/gm)].map(([, heap]) => heap);
    const count = heaps().length;
    observed.child.kill("SIGUSR2");
    while (heaps().length === count) await sleep(100);
    console.log(`| ${handles.toLocaleString("en")} | ${heaps().at(-1)} | ${rssMb(observed.child)} |`);
  }
  observed.child.kill("SIGKILL");

  const redis = await startRedis();
  const usedByRedis = async () => {
    const info = (await redis.command("INFO")) as string;
    const numberOf = (name: string) => Number(new RegExp(`^${name}:(.*)$`, "m").exec(info)![1]);
    const cpu = numberOf("used_cpu_user") + numberOf("used_cpu_sys");
    return { cpuMicroseconds: cpu * 1e6, commands: numberOf("total_commands_processed") };
  };
  console.log(
    "\n| replicas | Redis | requests/s | ratio | Redis commands per request | Redis CPU µs per request |\n|--:|---|--:|--:|--:|--:|",
  );
  let alone: number | undefined;
  for (const [replicas, redisUrl] of [
    [1, ""],
    [1, redis.url],
    [2, redis.url],
  ] as const) {
    const servers = [];
    for (let i = 0; i < replicas; i++) servers.push(await startGateway({ ...env, REDIS_URL: redisUrl }, i));
    for (const { url } of servers) await cacheHandles(url, 100);
    for (const { url } of servers) await load(url, { name: "rest" }, 3, 100);
    const before = await usedByRedis();
    const results = await Promise.all(servers.map(({ url }) => load(url, { name: "rest" }, SECONDS, 100)));
    const after = await usedByRedis();
    const rate = results.reduce((sum, { requests, seconds }) => sum + requests / seconds, 0);
    const count = results.reduce((sum, { requests }) => sum + requests, 0);
    alone ??= rate;
    const cells = [
      ...[replicas, redisUrl ? "yes" : "no", rate.toFixed(0), (rate / alone).toFixed(2)],
      ((after.commands - before.commands) / count).toFixed(2),
      ((after.cpuMicroseconds - before.cpuMicroseconds) / count).toFixed(1),
    ];
    console.log(`| ${cells.join(" | ")} |`);
    for (const { child } of servers) child.kill("SIGKILL");
  }
  await redis.stop();
} finally {
  stopAll();
}

/** Looks up the addresses of new handles: 100 per operation, 4 operations in flight. */
async function lookUpHandles(url: string, from: number, to: number): Promise<void> {
  const query = "query ($handles: [String!]!) { wallets(handles: $handles) { address } }";
  let next = from;
  async function sendOperations(): Promise<void> {
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
      if (errors) throw new Error(`the operation failed: ${JSON.stringify(errors)}`);
    }
  }
  await Promise.all(Array.from({ length: 4 }, sendOperations));
}
