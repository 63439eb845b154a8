import { test } from "vitest";
import { hasRedis } from "./describe-with-redis.ts";
import { startRedis, type RedisServer } from "./redis-server.ts";
import { startReplicas, type ReplicaOptions, type Replicas } from "./replicas.ts";
import { startTestSandbox, type TestSandbox } from "./sandbox.ts";
import { startWorld, type World } from "./world.ts";

type SharedReplicas = Replicas & { readonly redis: RedisServer };

/** The world of the test that runs, for functions that get no fixtures. */
export let world: World;
/** The replicas of the test that runs. */
export let replicas: SharedReplicas;
/** The sandbox of the test that runs, and its chain. */
export let sandbox: TestSandbox;
export let chain: TestSandbox["chain"];

function setSandbox(of: TestSandbox): void {
  sandbox = of;
  ({ chain } = of);
}

const withWorldPer =
  (scope: "file" | "test") =>
  (...options: Parameters<typeof startWorld>) =>
    test.extend<{ world: World; current: undefined }>({
      world: [
        async ({}, use) => {
          const started = await startWorld(...options);
          await use(started);
          await started.close();
        },
        { scope },
      ],
      current: [
        async ({ world: started }, use) => {
          world = started;
          setSandbox(world.sandbox);
          await use(undefined);
          started.clearFaults();
        },
        { auto: true },
      ],
    });

/** An `it` whose tests share a world, which the first of them starts. Faults end with a test. */
export const withWorld = withWorldPer("file");
/** An `it` whose tests have a world each. */
export const withNewWorld = withWorldPer("test");
/** An `it` whose tests share a world with the default configuration. */
export const it = withWorld();

/** An `it` whose tests have a sandbox each, without a gateway. */
export const withNewSandbox = (...options: Parameters<typeof startTestSandbox>) =>
  test.extend<{ started: undefined }>({
    started: [
      async ({}, use) => {
        setSandbox(await startTestSandbox(...options));
        await use(undefined);
        await sandbox.close();
      },
      { auto: true },
    ],
  });

/**
 * An `it` whose tests share two replicas and their Redis. Without redis-server they are skipped,
 * and fail in CI.
 */
export const withReplicas = (options?: ReplicaOptions) =>
  test.extend<{ started: SharedReplicas | undefined; replicas: SharedReplicas }>({
    started: [
      async ({}, use) => {
        if (!hasRedis) return use(undefined);
        const redis = await startRedis();
        const started = await startReplicas(redis.url, options);
        await use({ ...started, redis });
        await started.close();
        await redis.stop();
      },
      { scope: "file" },
    ],
    replicas: [
      async ({ started, skip }, use) => {
        if (!started) return skip("redis-server is not installed: apt-get install redis-server");
        replicas = started;
        setSandbox(replicas.sandbox);
        await use(replicas);
        for (const { faults } of [sandbox.rpc, sandbox.social]) faults.clear();
      },
      { auto: true },
    ],
  });
