import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { createClient } from "../support/client.ts";
import { MAIN, NO_CODE_FROM_STRINGS, spawnNode } from "../support/program.ts";
import { isMethod, startTestSandbox, isLook } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

it("kill of npm's process group stops the service, which first finishes its collects", async () => {
  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const confirm = sandbox.rpc.faults.add({
    when: isLook,
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
  await expect.poll(() => output).toContain('"msg":"listening"');
  const { url, collect } = createClient(/"url":"(http[^"]+)"/.exec(output)![1]!);
  const answer = collect(sandbox.account("creator").id);
  await expect.poll(() => sandbox.rpc.calls.some(isMethod("sendTransaction"))).toBe(true);
  // As a terminal does at Ctrl-C, or systemd. npm passes signals on, so the service gets each
  // twice, or once if they arrive together. Different ones stay apart.
  for (const signal of ["SIGINT", "SIGTERM"]) process.kill(-npm.pid!, signal);
  await expect.poll(() => fetch(url).catch(() => "closed")).toBe("closed");
  confirm();
  expect((await answer).body).toMatchObject({ success: true, collected: "3.1000" });
  // Only when no process has its standard output any more.
  await closed;
  expect(output).toContain('"msg":"stopped"');
});

it("an older Node ends with the version that the service needs", async () => {
  const imitate = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.23.1" } })`;
  const args = ["--import", `data:text/javascript,${encodeURIComponent(imitate)}`, MAIN];
  const program = spawnNode(args, {});
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toBe(
    `Tributary needs Node 24 or later, not Bun or Deno; this is ${process.execPath} (22.23.1). Install Node 24, or the project's own: npm ci --include=dev, without --ignore-scripts.\n`,
  );
});

/** The only line of a log, without its time. */
function logLine(output: string): object {
  const { time, ...line } = JSON.parse(output) as { time: number };
  expect(time).toBeGreaterThan(Date.now() - 3_600_000);
  return line;
}

it("production logs why it cannot start as it logs everything else", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  onTestFinished(() => void holder.close());
  const { port } = holder.address() as AddressInfo;
  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const production = { ...sandbox.env, NODE_ENV: "production", PORT: String(port) };
  for (const [env, msg] of [
    [{}, `Tributary cannot start: listen EADDRINUSE: address already in use 127.0.0.1:${port}.`],
    [{ SOCIAL_API_URL: "" }, "Tributary cannot start:\n  - SOCIAL_API_URL: missing."],
  ] as const) {
    const program = spawnNode([NO_CODE_FROM_STRINGS, MAIN], { ...production, ...env });
    expect(await program.exitCode()).toBe(1);
    expect(logLine(program.output().trim().split("\n").at(-1)!)).toEqual({
      level: 50,
      instance: `${hostname()}:${port}`,
      msg: expect.stringContaining(msg),
    });
  }
});

it("production does not start in a process that can make code from strings", async () => {
  const production = { NODE_ENV: "production", PORT: "0" };
  const program = spawnNode([MAIN], production);
  expect(await program.exitCode()).toBe(1);
  const { start } = manifest.scripts;
  expect(logLine(program.output())).toEqual({
    level: 50,
    instance: `${hostname()}:0`,
    msg: `Tributary cannot start:\n  - NODE_ENV=production needs a process that makes no code from strings. Start it with npm start, or with: ${start.replace("exec ", "")}`,
  });
  expect(start).toContain(NO_CODE_FROM_STRINGS);

  // NODE_ENV may also stand in a file.
  const folder = temporaryFolder();
  writeFileSync(join(folder, ".env"), "NODE_ENV=production\n");
  const fromFile = spawnNode([MAIN], {}, folder);
  expect(await fromFile.exitCode()).toBe(1);
  expect(fromFile.output()).toContain(NO_CODE_FROM_STRINGS);
});
