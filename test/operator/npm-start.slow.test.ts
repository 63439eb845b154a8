import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { createClient } from "../support/client.ts";
import { eventually } from "../support/eventually.ts";
import { MAIN, spawnNode } from "../support/program.ts";
import { isMethod, startTestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

it.each([
  ["npm start", 1, ["SIGTERM"]],
  // As a terminal does at Ctrl-C, or systemd. npm passes signals on, so the service gets each
  // twice, or once if they arrive together. Different ones stay apart.
  ["its process group", -1, ["SIGINT", "SIGTERM"]],
])(
  "kill of %s stops the service, which first finishes its collects",
  async (_name, sign, signals) => {
    const sandbox = await startTestSandbox();
    onTestFinished(() => sandbox.close());
    const confirm = sandbox.rpc.faults.add({
      when: isMethod("getSignatureStatuses"),
      then: "reset",
    });
    const service = {
      ...sandbox.env,
      ...AMPLE_DEADLINES,
      PORT: "0",
      LOG_LEVEL: "info",
      REDIS_URL: "",
    };
    const env = { ...process.env, ...service };
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
    const { url, collect } = createClient(/"url":"(http[^"]+)"/.exec(output)![1]!);
    const answer = collect(sandbox.account("creator").id);
    await expect.poll(() => sandbox.rpc.calls.some(isMethod("sendTransaction"))).toBe(true);
    for (const signal of signals) process.kill(sign * npm.pid!, signal);
    await expect.poll(() => fetch(url).catch(() => "closed")).toBe("closed");
    confirm();
    expect((await answer).body).toMatchObject({ success: true, collected: "3.1000" });
    // Only when no process has its standard output any more.
    await closed;
    expect(output).toContain('"msg":"stopped"');
  },
);

it("an older Node ends with the version that the service needs", async () => {
  const older =
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.23.1" } })';
  const program = spawnNode(
    ["--import", `data:text/javascript,${encodeURIComponent(older)}`, MAIN],
    {},
  );
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toBe(
    "Tributary needs Node 24 or later, and this is Node 22.23.1. The project's own Node was not installed: run npm ci without --ignore-scripts and --omit=dev.\n",
  );
});
