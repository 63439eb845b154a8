import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect } from "vitest";

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;
const started: ChildProcess[] = [];

// Ends only what the test file has started.
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

/** Starts the program in an empty folder with these variables and no others. */
export function startProgram(
  env: Record<string, string>,
  folder = mkdtempSync(join(tmpdir(), "tributary-")),
) {
  const child = spawn(process.execPath, [MAIN], { cwd: folder, env: { PATH: process.env.PATH, ...env } });
  started.push(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return {
    child,
    output: () => output,
    /** The address that the output names after `label`. */
    address: async (label: RegExp): Promise<string> => {
      await expect.poll(() => label.test(output) || child.exitCode !== null, { timeout: 20_000 }).toBe(true);
      return label.exec(output)?.[1] ?? expect.fail(`no ${label.source} in: ${output}`);
    },
    exitCode: async (): Promise<number> => {
      if (child.exitCode === null) await once(child, "exit");
      return child.exitCode!;
    },
  };
}
