import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { eventually } from "../support/eventually.ts";
import { MAIN, spawnNode } from "../support/program.ts";
import { startTestSandbox } from "../support/sandbox.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

it("kill of npm start stops the service, which first finishes what it does", async () => {
  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const env = { ...process.env, ...sandbox.env, PORT: "0", LOG_LEVEL: "info", REDIS_URL: "" };
  const npm = spawn("npm", ["start"], {
    cwd: ROOT,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const closed = once(npm, "close");
  onTestFinished(() => {
    try {
      process.kill(-npm.pid!, "SIGKILL");
    } catch {
      // The group has ended.
    }
  });
  let output = "";
  npm.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await eventually(() => {
    expect(output).toContain('"msg":"listening"');
  });
  npm.kill("SIGTERM");
  // Only when no process has its standard output any more.
  await closed;
  expect(output).toContain('"msg":"stopped"');
});

it("an older Node ends with the version that the service needs", async () => {
  const older =
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.23.1" } })';
  const program = spawnNode(["--import", `data:text/javascript,${encodeURIComponent(older)}`, MAIN], {});
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toBe("Tributary needs Node 24 or later, and this is Node 22.23.1.\n");
});
