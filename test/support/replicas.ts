import { expect } from "vitest";
import { createClient, type Client } from "./client.ts";
import { eventually } from "./eventually.ts";
import { spawnNode, type Program } from "./program.ts";
import { startTestSandbox } from "./sandbox.ts";
import { AMPLE_DEADLINES } from "./world.ts";

const REPLICA = new URL("replica.ts", import.meta.url).pathname;

export type Replicas = Awaited<ReturnType<typeof startReplicas>>;

/** Starts a sandbox and two gateway processes that use it and share the Redis at `redisUrl`. */
export async function startReplicas(
  redisUrl: string,
  {
    env = {},
    redisAnswerTimeoutMs = 600_000,
  }: { env?: Record<string, string>; redisAnswerTimeoutMs?: number } = {},
) {
  const sandbox = await startTestSandbox();
  const replicas: { program: Program; client: Client }[] = [];

  async function start(i: number): Promise<void> {
    const program = spawnNode([REPLICA, String(redisAnswerTimeoutMs)], {
      ...sandbox.env,
      ...AMPLE_DEADLINES,
      NODE_ENV: "production",
      PORT: "0",
      TRUST_PROXY: "127.0.0.1",
      REDIS_URL: redisUrl,
      // Longer than a test on any machine.
      RATE_LIMIT_WINDOW_SECONDS: "3600",
      ...env,
    });
    replicas[i] = { program, client: createClient(await program.address(/"url":"(http[^"]+)"/)) };
  }
  await Promise.all([start(0), start(1)]);

  /** The `tributary_redis_up` metric of each replica. */
  const redisUp = () =>
    Promise.all(
      replicas.map(async ({ client }) => {
        const { body } = await client.request("/metrics");
        return Number(/^tributary_redis_up (\d)$/m.exec(body)?.[1]);
      }),
    );
  const redisIs = (up: number) =>
    eventually(async () => {
      expect(await redisUp()).toEqual([up, up]);
    });
  const redisIsBack = () => redisIs(1);
  await redisIsBack();

  return {
    sandbox,
    /** The client of replica `i` modulo 2. */
    at: (i: number) => replicas[i % 2]!.client,
    output: (i: number) => replicas[i]!.program.output(),
    /** Kills a replica, as a crash would. */
    kill: (i: number) => replicas[i]!.program.child.kill("SIGKILL"),
    /** Starts a killed replica again. */
    async restart(i: number) {
      await start(i);
      await redisIsBack();
    },
    /** Resolves when Redis is up for both replicas. */
    redisIsBack,
    /** Resolves when Redis is down for both replicas. */
    redisIsAway: () => redisIs(0),
    /**
     * Resolves when the replicas have received all earlier requests: an event loop reads connections in the
     * order in which they become readable.
     */
    async takeUp() {
      for (let round = 0; round < 3; round++)
        await Promise.all(replicas.map(({ client }) => client.request("/livez")));
    },
    async close() {
      for (const { program } of replicas) program.child.kill("SIGKILL");
      await sandbox.close();
    },
  };
}
