import { execFileSync, spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { createClient } from "../support/client.ts";
import { endWithTests } from "../support/ended-children.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { MAIN, NO_CODE_FROM_STRINGS } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(() => sandbox.close());

function openForTest(path: string, flags: number): number {
  const file = openSync(path, flags);
  onTestFinished(() => {
    closeSync(file);
  });
  return file;
}

/** A pipe that is full and that nobody reads. */
function openFullPipe(): number {
  const path = join(temporaryFolder(), "pipe");
  execFileSync("mkfifo", [path]);
  const both = openForTest(path, constants.O_RDWR | constants.O_NONBLOCK);
  expect(() => {
    for (;;) writeSync(both, "x".repeat(4_096));
  }).toThrow("EAGAIN");
  return openForTest(path, constants.O_WRONLY);
}

it.each([
  ["on a full disk", () => openForTest("/dev/full", constants.O_WRONLY)],
  ["in a pipe that nobody reads", openFullPipe],
])("a log %s keeps the service neither from answering nor from stopping", async (_where, open) => {
  const port = await freePort();
  const stdio: StdioOptions = ["ignore", open(), "ignore"];
  const env = { ...sandbox.env, PATH: process.env.PATH, PORT: String(port) };
  const child = spawn(process.execPath, [NO_CODE_FROM_STRINGS, MAIN], {
    cwd: temporaryFolder(),
    env,
    stdio,
  });
  endWithTests(child);
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit");
  const client = createClient(`http://127.0.0.1:${port}`);
  await eventually(async () => {
    expect((await client.request("/readyz")).status).toBe(200);
  });
  expect((await client.lookup("creator")).status).toBe(200);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});
