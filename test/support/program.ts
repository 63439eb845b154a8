import { spawn } from "node:child_process";
import { once } from "node:events";
import { format } from "node:util";
import { expect, onTestFinished } from "vitest";
import { main } from "../../src/main.ts";
import { endWithTests } from "./ended-children.ts";
import { eventually } from "./eventually.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export const MAIN = new URL("../../src/start.js", import.meta.url).pathname;

/** The flag of `npm start` without which production does not start. */
export const NO_CODE_FROM_STRINGS = "--disallow-code-generation-from-strings";

/** A running command. */
export interface Program {
  output(): string;
  /** The first group of `label` in the output; waits until it appears. */
  address(label: RegExp): Promise<string>;
  exitCode(): Promise<number>;
  /** Asks it to stop; a second time, at least a second later, to stop at once. */
  stop(): void;
}

/**
 * Runs the service in this process, with only these variables and arguments, until the test ends.
 * Libraries still see the variables of this process, and what they print themselves is not in the
 * output.
 */
export function runMain(env: Record<string, string>, args: readonly string[] = []): Program {
  let stop: ((signal: "SIGINT" | "SIGTERM") => void) | undefined;
  let output = "";
  let hasEnded = false;
  const write = (text: string) => void (output += text);
  const ended = main(args, {
    readEnv: () => ({ env, warnings: [] }),
    print: (text) => {
      write(`${text}\n`);
    },
    printError: (...values) => {
      write(`${format(...values)}\n`);
    },
    logStream: { write },
    onSignal: (listener) => (stop = listener),
  }).finally(() => (hasEnded = true));
  onTestFinished(() => {
    if (hasEnded) return;
    stop?.("SIGINT");
    // Ends it if it still waits when a second signal counts.
    setTimeout(() => stop?.("SIGINT"), 1_100).unref();
  });
  return {
    ...reading(
      () => output,
      () => hasEnded,
    ),
    stop: () => {
      stop!("SIGINT");
    },
    exitCode: () => ended,
  };
}

/**
 * Starts the service as a process with only these variables and arguments, by default in an empty
 * folder. Killed when the test ends.
 */
export function startProgram(
  env: Record<string, string>,
  folder = temporaryFolder(),
  args: readonly string[] = [],
) {
  const program = spawnNode([NO_CODE_FROM_STRINGS, MAIN, ...args], env, folder);
  onTestFinished(() => {
    program.child.kill("SIGKILL");
  });
  return program;
}

/** Starts Node with these arguments, and only these variables. */
export function spawnNode(
  args: readonly string[],
  env: Record<string, string>,
  folder = temporaryFolder(),
) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { PATH, NODE_COMPILE_CACHE, ...env },
  });
  endWithTests(child);
  const closed = once(child, "close");
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return {
    child,
    ...reading(
      () => output,
      () => child.exitCode !== null,
    ),
    exitCode: async (): Promise<number> => {
      await closed;
      return child.exitCode!;
    },
    stop: () => void child.kill("SIGTERM"),
  };
}

function reading(output: () => string, hasEnded: () => boolean) {
  return {
    output,
    address: async (label: RegExp): Promise<string> => {
      await eventually(() => {
        expect(label.test(output()) || hasEnded()).toBe(true);
      });
      return label.exec(output())?.[1] ?? expect.fail(`no ${label.source} in: ${output()}`);
    },
  };
}
