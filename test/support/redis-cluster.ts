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

/**
 * Starts a Redis Cluster of three masters, each with a third of the slots. With `nodeTimeoutMs`,
 * the first has a replica, which is promoted when its master does not answer for that long.
 */
export async function startRedisCluster({ nodeTimeoutMs }: { nodeTimeoutMs?: number } = {}) {
  const startNode = async () => {
    let busPort = 0;
    const node = await startRedis(async () => {
      busPort = await freePort();
      const file = join(temporaryFolder(), "nodes.conf");
      return [
        ...[
          "--cluster-enabled",
          "yes",
          "--cluster-config-file",
          file,
          "--cluster-port",
          String(busPort),
        ],
        ...["--cluster-node-timeout", String(nodeTimeoutMs ?? NEVER_MS)],
      ];
    });
    return { ...node, busPort };
  };
  const nodes = await Promise.all(
    Array.from({ length: nodeTimeoutMs === undefined ? MASTERS : MASTERS + 1 }, startNode),
  );
  const masters = nodes.slice(0, MASTERS);
  const [replica] = nodes.slice(MASTERS);

  for (const [i, node] of masters.entries()) {
    const start = Math.ceil((i * SLOTS) / MASTERS);
    const end = Math.ceil(((i + 1) * SLOTS) / MASTERS) - 1;
    await node.command("CLUSTER", "ADDSLOTSRANGE", start, end);
    await node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
  }
  for (const { port, busPort } of nodes.slice(1))
    await nodes[0]!.command("CLUSTER", "MEET", "127.0.0.1", port, busPort);
  const isComplete = () =>
    eventually(async () => {
      for (const node of nodes) {
        const info: string = await node.command("CLUSTER", "INFO");
        expect(info).toContain("cluster_state:ok");
        expect(info).toContain(`cluster_known_nodes:${nodes.length}`);
      }
    });
  await isComplete();
  if (replica) {
    await replica.command("CLUSTER", "REPLICATE", await nodes[0]!.command("CLUSTER", "MYID"));
    await eventually(async () => {
      expect(await replica.command("INFO", "replication")).toContain("master_link_status:up");
    });
  }

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
    /** The replica of the first master. */
    replica: replica as RedisServer | undefined,
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
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}
