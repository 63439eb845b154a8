import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect } from "vitest";
import { endWithTests } from "./ended-children.ts";
import { eventually } from "./eventually.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;
const startedPrograms: ChildProcess[] = [];

afterEach(() => {
  for (const child of startedPrograms.splice(0)) child.kill("SIGKILL");
});

export type Program = ReturnType<typeof spawnNode>;

/**
 * Starts the service with only these variables and arguments, by default in an empty folder. Killed when the
 * test ends.
 */
export function startProgram(
  env: Record<string, string>,
  folder = temporaryFolder(),
  args: readonly string[] = [],
): Program {
  const program = spawnNode([MAIN, ...args], env, folder);
  startedPrograms.push(program.child);
  return program;
}

/** Starts Node with these arguments, and only these variables. */
export function spawnNode(args: readonly string[], env: Record<string, string>, folder = temporaryFolder()) {
  const child = spawn(process.execPath, args, { cwd: folder, env: { PATH: process.env.PATH, ...env } });
  endWithTests(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return {
    child,
    output: () => output,
    /** The first group of `label` in the output; waits until it appears. */
    address: async (label: RegExp): Promise<string> => {
      await eventually(() => {
        expect(label.test(output) || child.exitCode !== null).toBe(true);
      });
      return label.exec(output)?.[1] ?? expect.fail(`no ${label.source} in: ${output}`);
    },
    exitCode: async (): Promise<number> => {
      if (child.exitCode === null) await once(child, "exit");
      return child.exitCode!;
    },
  };
}
