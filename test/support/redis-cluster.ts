import { join } from "node:path";
import { Cluster } from "ioredis";
import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { startRedis, type RedisServer } from "./redis-server.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export type RedisCluster = Awaited<ReturnType<typeof startRedisCluster>>;

const SLOTS = 16_384;
const MASTERS = 3;
/** So long that a frozen node, or a slow machine, never changes the cluster. */
const NEVER_MS = 3_600_000;

/** Starts a Redis Cluster of three masters, each with a third of the slots. */
export async function startRedisCluster() {
  const startMaster = async () => {
    let busPort = 0;
    const node = await startRedis(async () => {
      busPort = await freePort();
      const file = join(temporaryFolder(), "nodes.conf");
      return [
        ...["--cluster-enabled", "yes", "--cluster-config-file", file],
        ...["--cluster-port", String(busPort), "--cluster-node-timeout", String(NEVER_MS)],
      ];
    });
    return { ...node, busPort };
  };
  const masters = await Promise.all(Array.from({ length: MASTERS }, startMaster));

  for (const [i, node] of masters.entries()) {
    const start = Math.ceil((i * SLOTS) / MASTERS);
    const end = Math.ceil(((i + 1) * SLOTS) / MASTERS) - 1;
    await node.command("CLUSTER", "ADDSLOTSRANGE", start, end);
    await node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
  }
  for (const { port, busPort } of masters.slice(1))
    await masters[0]!.command("CLUSTER", "MEET", "127.0.0.1", port, busPort);
  await eventually(async () => {
    for (const node of masters) {
      const info: string = await node.command("CLUSTER", "INFO");
      expect(info).toContain("cluster_state:ok");
      expect(info).toContain(`cluster_known_nodes:${MASTERS}`);
    }
  });

  /** Runs a command on the node that has its keys. */
  async function command(name: string, ...args: (string | number)[]): Promise<any> {
    const client = new Cluster(masters.map(({ port }) => ({ host: "127.0.0.1", port })));
    try {
      return await client.call(name, ...args);
    } finally {
      client.disconnect();
    }
  }

  return {
    url: masters.map(({ url }) => url).join(),
    urls: masters.map(({ url }) => new URL(url)),
    masters: masters as readonly RedisServer[],
    command,
    /** The master that has this key. */
    async masterOf(key: string): Promise<RedisServer> {
      const slot: number = await masters[0]!.command("CLUSTER", "KEYSLOT", key);
      return masters[Math.floor((slot * MASTERS) / SLOTS)]!;
    },
    /** All keys that match the pattern, on all masters. */
    async keys(pattern: string): Promise<string[]> {
      return (await Promise.all(masters.map((node) => node.command("KEYS", pattern)))).flat();
    },
    async stop() {
      await Promise.all(masters.map((node) => node.stop()));
    },
  };
}
