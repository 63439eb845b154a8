import { expect } from "vitest";
import { createClient } from "./client.ts";
import { eventually } from "./eventually.ts";
import { productionEnv } from "./production.ts";
import { spawnNode } from "./program.ts";
import { runReplica } from "./replica.ts";
import { startTestSandbox } from "./sandbox.ts";

const REPLICA = new URL("replica.ts", import.meta.url).pathname;

type Env = Record<string, string>;

export type Replicas = Awaited<ReturnType<typeof startReplicas>>;

export interface ReplicaOptions {
  readonly redisAnswerTimeoutMs?: number;
  readonly asProcesses?: boolean;
}

/**
 * Starts a sandbox and two gateways that use it and share only the Redis at `redisUrl`. They run in
 * this process, or with `asProcesses` in one each, which a test may kill.
 */
export async function startReplicas(
  redisUrl: string,
  { redisAnswerTimeoutMs = 600_000, asProcesses = false }: ReplicaOptions = {},
) {
  const sandbox = await startTestSandbox();
  const run = asProcesses ? startProcess : runInThisProcess;
  const start = async () => {
    const env = productionEnv(sandbox, { REDIS_URL: redisUrl });
    const replica = await run(env, redisAnswerTimeoutMs);
    return { ...replica, client: createClient(replica.url) };
  };
  const replicas = await Promise.all([start(), start()]);

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
    output: (i: number) => replicas[i]!.output(),
    /** Kills a replica's process, as a crash would. */
    kill(i: number) {
      expect(asProcesses).toBe(true);
      void replicas[i]!.close();
    },
    /** Starts a killed replica again. */
    async restart(i: number) {
      replicas[i] = await start();
      await redisIsBack();
    },
    /** Resolves when Redis is up for both replicas. */
    redisIsBack,
    /** Resolves when Redis is down for both replicas. */
    redisIsAway: () => redisIs(0),
    /**
     * Resolves when the replicas have received all earlier requests: an event loop reads
     * connections in the order in which they become readable.
     */
    async takeUp() {
      for (let round = 0; round < 3; round++)
        await Promise.all(replicas.map(({ client }) => client.request("/livez")));
    },
    async close() {
      await Promise.all(replicas.map(({ close }) => close()));
      await sandbox.close();
    },
  };
}

async function runInThisProcess(env: Env, redisAnswerTimeoutMs: number) {
  let output = "";
  const logStream = { write: (line: string) => void (output += line) };
  const { url, close } = await runReplica(env, { redisAnswerTimeoutMs, logStream });
  return { url, output: () => output, close };
}

async function startProcess(env: Env, redisAnswerTimeoutMs: number) {
  const { child, output, address } = spawnNode([REPLICA, String(redisAnswerTimeoutMs)], env);
  const url = await address(/"url":"(http[^"]+)"/);
  return { url, output, close: () => Promise.resolve(void child.kill("SIGKILL")) };
}
