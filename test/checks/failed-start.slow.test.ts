import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startProgram } from "../support/program.ts";
import { startRedis } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

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

describeWithRedis("a start with the URLs of servers that are no Redis Cluster", () => {
  it("ends with code 1 and asks for only one in REDIS_URL, without the password", async () => {
    const servers = await Promise.all([startRedis(), startRedis()]);
    onTestFinished(async () => {
      for (const server of servers) await server.stop();
    });
    const urls = servers.map(({ url }) => url.replace("//", "//:pass-that-is-secret@")).join();
    // Repeats until Redis answers within the second that the start waits for it.
    for (;;) {
      const program = startProgram(envWith({ REDIS_URL: urls }));
      await expect
        .poll(() => program.child.exitCode !== null || program.output().includes("listening"))
        .toBe(true);
      if (program.child.exitCode === null) continue;
      expect(program.child.exitCode).toBe(1);
      expect(program.output()).toMatch(/Tributary cannot start:\n {2}- REDIS_URL: .*set only one/);
      expect(program.output()).not.toContain("pass-that-is-secret");
      break;
    }
  });
});
