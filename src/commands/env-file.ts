import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { ConfigError } from "../config.ts";

/**
 * An assignment as Node's parser reads it. A quoted value may end on a later line; others end with
 * their line.
 */
const ASSIGNMENT =
  /^[^\S\n]*(?:export\s+)?(?<name>[^=\s:#][^=:\n]*?)[^\S\n]*=[^\S\n]*(?:(?<quote>["'`])[^]*?\k<quote>.*|(?<value>.*))/gm;

/**
 * Adds a file's variables to this process, if the file exists. Variables that the process already
 * has take precedence. Returns warnings about ambiguous lines; no warning quotes a value. Throws
 * ConfigError if the file cannot be read, or if {@link checkLines} finds `broken` lines.
 */
export function loadEnvFile(path: string): string[] {
  let text: string;
  try {
    // Some editors put a byte-order mark first.
    text = readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return [];
    throw new ConfigError([
      `${path} cannot be read (${code}): expected a file of NAME=value lines`,
    ]);
  }
  const { broken, warnings } = checkLines(text);
  const problems = broken.map(
    (number) => `${path}, line ${number}: expected NAME=value (the line is not shown here)`,
  );
  if (problems.length > 0) throw new ConfigError(problems);
  for (const [name, value] of Object.entries(parseEnv(text))) process.env[name] ??= value;
  return warnings.map((warning) => `${path}, ${warning}`);
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
