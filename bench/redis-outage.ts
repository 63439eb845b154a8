/**
 * Measures requests while Redis is up, frozen and stopped: lookups of a cached handle with its balance, and
 * collects, through the gateway on a sandbox. Starts and stops its own redis-server.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { readConfig } from "../src/config.ts";
import { createGateway } from "../src/gateway.ts";
import { createLogger } from "../src/observability/log.ts";
import { startSandbox } from "../src/sandbox/sandbox.ts";
import { startRedis } from "../test/support/redis-server.ts";

const PHASE_MS = 4_000;
const CONCURRENCY = 10;

const server = await startRedis();
const sandbox = await startSandbox({ slotMs: 100, rpcPort: 0, socialPort: 0 });
const config = readConfig({ ...sandbox.env, REDIS_URL: server.url, TRUST_PROXY: "127.0.0.1" });
const gateway = createGateway(config, { log: createLogger("silent") });
await gateway.ready;

let callers = 0;
async function timed(path: string, init: RequestInit = {}): Promise<{ ms: number; isOk: boolean }> {
  const from = `10.${callers >> 16}.${(callers >> 8) & 255}.${callers++ & 255}`;
  const request = new Request(`http://gateway${path}`, { ...init, headers: { "x-forwarded-for": from } });
  const startedAt = performance.now();
  const response = await gateway.fetch(request, { remoteAddress: "127.0.0.1" });
  await response.arrayBuffer();
  return { ms: performance.now() - startedAt, isOk: response.status === 200 };
}

const accounts = sandbox.accounts.filter(
  ({ creatorVault }) => sandbox.chain.balance(creatorVault) > 100_000_000n,
);
let collected = 0;

console.log("| Redis | requests | failed | p50 ms | p99 ms | slowest ms |\n|---|--:|--:|--:|--:|--:|");
async function phase(name: string): Promise<void> {
  const until = performance.now() + PHASE_MS;
  const lookups: { ms: number; isOk: boolean }[] = [];
  const collects: typeof lookups = [];
  const lookUp = async () => {
    while (performance.now() < until) lookups.push(await timed("/wallet/lookup?handle=creator"));
  };
  const collect = async () => {
    while (performance.now() < until) {
      const body = JSON.stringify({ socialId: accounts[collected++ % accounts.length]!.id });
      collects.push(await timed("/collect", { method: "POST", body }));
    }
  };
  await Promise.all([...Array.from({ length: CONCURRENCY }, lookUp), collect()]);
  for (const [kind, all] of [
    ["lookups", lookups],
    ["collects", collects],
  ] as const) {
    const times = all.map(({ ms }) => ms).sort((a, b) => a - b);
    const at = (share: number) =>
      times[Math.min(times.length - 1, Math.floor(times.length * share))]!.toFixed(0);
    const failed = all.filter(({ isOk }) => !isOk).length;
    console.log(`| ${name} | ${all.length} ${kind} | ${failed} | ${at(0.5)} | ${at(0.99)} | ${at(1)} |`);
  }
}

await phase("(warm-up)");
await phase("up");
setTimeout(server.freeze, 500);
await phase("frozen from 0.5 s on");
server.thaw();
await sleep(500);
await phase("back");
setTimeout(() => void server.stop(), 500);
await phase("stopped from 0.5 s on");
await server.start();
await sleep(1_500);
await phase("started again");

await gateway.settled();
gateway.close();
await Promise.all([sandbox.close(), server.stop()]);
