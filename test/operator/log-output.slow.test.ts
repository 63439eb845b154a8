import { execFileSync, spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import { createClient } from "../support/client.ts";
import { endWithTests } from "../support/ended-children.ts";
import { freePort } from "../support/free-port.ts";
import { MAIN, NO_CODE_FROM_STRINGS } from "../support/program.ts";
import { sandbox, withNewSandbox } from "../support/fixtures.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const it = withNewSandbox();

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
  await expect.poll(async () => (await client.request("/readyz")).status).toBe(200);
  expect((await client.lookup("creator")).status).toBe(200);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

it("a log says how many lines were dropped, once somebody reads it again", async () => {
  const log = new URL("../../src/observability/log.ts", import.meta.url).href;
  const script = `
    import { createLogger, droppedLines, reportDroppedLines } from ${JSON.stringify(log)};
    const log = createLogger("info").child({ instance: "here" });
    reportDroppedLines(log);
    for (let i = 0; i < 20; i++) log.info("x".repeat(1024 * 1024));
    process.stderr.write(String(droppedLines()));
    setInterval(() => {}, 1_000);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  endWithTests(child);
  onTestFinished(() => void child.kill("SIGKILL"));
  const [dropped] = (await once(child.stderr, "data")) as [Buffer];
  expect(Number(dropped.toString())).toBeGreaterThan(0);
  const reports: object[] = [];
  createInterface(child.stdout).on("line", (line) => {
    const { level, instance, lines, msg } = JSON.parse(line);
    if (!msg.startsWith("x")) reports.push({ level, instance, lines, msg });
  });
  const lines = Number(dropped.toString());
  await expect
    .poll(() => reports)
    .toEqual([
      {
        level: 40,
        instance: "here",
        lines,
        msg: "log lines were dropped: standard output was full for too long",
      },
    ]);
});
