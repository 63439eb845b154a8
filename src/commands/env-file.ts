import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { ConfigError } from "../config.ts";
import { codeOf } from "../observability/thrown.ts";
import { isReadableByAll } from "./risky-variables.ts";

/**
 * An assignment as Node's parser reads it. A quoted value may end on a later line; others end with
 * their line.
 */
const ASSIGNMENT =
  /^[^\S\n]*(?:export\s+)?(?<name>[^=\s:#][^=:\n]*?)[^\S\n]*=[^\S\n]*(?:(?<quote>["'`])[^]*?\k<quote>.*|(?<value>.*))/gm;

/** What a file of variables has. */
export interface EnvFile {
  readonly names: ReadonlySet<string>;
  /** About ambiguous lines, and about the file itself. No warning quotes a value. */
  readonly warnings: readonly string[];
}

/**
 * Adds a file's variables to this process, if the file exists. Variables that the process already
 * has take precedence. Throws ConfigError if the file cannot be read, or if {@link checkLines}
 * finds `broken` lines.
 */
export function loadEnvFile(path: string): EnvFile {
  let text: string;
  try {
    // Some editors put a byte-order mark first.
    text = readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return { names: new Set(), warnings: [] };
    throw new ConfigError([
      `${path} cannot be read (${code}): expected a file of NAME=value lines`,
    ]);
  }
  const { broken, warnings } = checkLines(text);
  const problems = toRuns(broken).map(([first, last]) =>
    first === last
      ? `${path}, line ${first}: expected NAME=value (the line is not shown here)`
      : `${path}, lines ${first} to ${last}: expected NAME=value (the lines are not shown here). Put a value of several lines in quotes`,
  );
  if (problems.length > 0) throw new ConfigError(problems);
  const variables = Object.entries(parseEnv(text));
  for (const [name, value] of variables) process.env[name] ??= value;
  const key = variables.find(([name]) => name === "FEE_PAYER_KEYPAIR")?.[1];
  const isKeyExposed = key && !existsSync(key) && isReadableByAll(path);
  return {
    names: new Set(variables.map(([name]) => name)),
    warnings: [
      ...warnings.map((warning) => `${path}, ${warning}`),
      ...(isKeyExposed
        ? [
            `${path} has the fee payer's key, and every user of this machine can read it: run chmod 600 ${path}`,
          ]
        : []),
    ],
  };
}

/** The first and the last of each run of consecutive numbers. */
function toRuns(numbers: readonly number[]): [first: number, last: number][] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run?.[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}

/**
 * `broken`: the numbers of the lines that are neither empty, nor a comment, nor part of an
 * assignment `NAME=value`.
 */
export function checkLines(text: string): { broken: number[]; warnings: string[] } {
  const names = new Set<string>();
  const warnings: string[] = [];
  let others = text;
  for (const { 0: assignment, index, groups: { name = "", value = "" } = {} } of text.matchAll(
    ASSIGNMENT,
  )) {
    const where = `line ${text.slice(0, index).split("\n").length}: ${name}`;
    if (names.has(name)) warnings.push(`${where} is set again, and this value counts`);
    names.add(name);
    if (/^[^"'`#\s][^#]*\S#/.test(value))
      warnings.push(`${where} ends at the #: put the value in quotes`);
    const blank = assignment.replaceAll(/[^\n]/g, " ");
    others = others.slice(0, index) + blank + others.slice(index + blank.length);
  }
  const broken = others.split("\n").flatMap((line, i) => (/^\s*(#|$)/.test(line) ? [] : [i + 1]));
  return { broken, warnings };
}
