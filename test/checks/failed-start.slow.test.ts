import { Keypair } from "@solana/web3.js";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startProgram } from "../support/program.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod, startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const MAINNET = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(() => sandbox.close());

const envWith = (env: Record<string, string>) => ({
  ...sandbox.env,
  ...AMPLE_DEADLINES,
  PORT: "0",
  ...env,
});

it("a start that fails ends the process with code 1 and the reason", async () => {
  sandbox.rpc.faults.add({ when: isMethod("getGenesisHash"), then: rpcResult(MAINNET) });
  const program = startProgram(
    envWith({ ESCROW_PROGRAM_ID: Keypair.generate().publicKey.toBase58() }),
  );
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toContain(
    "Tributary cannot start: ESCROW_PROGRAM_ID: there is no program",
  );
});

describeWithRedis("a start with the URL of one node of a Redis Cluster", () => {
  it("ends with code 1 and asks for the others in REDIS_URL, without the password", async () => {
    const cluster = await startRedisCluster();
    onTestFinished(cluster.stop);
    const url = cluster.masters[0]!.url.replace("//", "//:pass-that-is-secret@");
    // Repeats until Redis answers within the second that the start waits for it.
    for (;;) {
      const program = startProgram(envWith({ REDIS_URL: url }));
      await expect
        .poll(() => program.child.exitCode !== null || program.output().includes("listening"))
        .toBe(true);
      if (program.child.exitCode === null) continue;
      expect(program.child.exitCode).toBe(1);
      expect(program.output()).toMatch(
        /Tributary cannot start: REDIS_URL: .*list the URLs of several nodes/,
      );
      expect(program.output()).not.toContain("pass-that-is-secret");
      break;
    }
  });
});
