import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { ConfigError } from "../config.ts";

/** A variable name that no file contains. */
const PROBE = "TRIBUTARY_BEGINNING_OF_A_LINE";

/**
 * Adds the variables of a file to this process, whose own variables take precedence. Does nothing without a file.
 * Returns warnings about lines that may mean something else; no warning quotes a value.
 *
 * @throws {ConfigError} for a file that cannot be read, and for lines that Node would skip silently.
 */
export function loadEnvFile(path: string): string[] {
  let text: string;
  try {
    // Some editors put a byte-order mark first.
    text = readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return [];
    throw new ConfigError([`${path} cannot be read (${code}): expected a file of NAME=value lines`]);
  }
  const problems = findBrokenLines(text).map(
    (number) => `${path}, line ${number}: expected NAME=value (the line is not shown here)`,
  );
  if (problems.length > 0) throw new ConfigError(problems);
  for (const [name, value] of Object.entries(parseEnv(text))) process.env[name] ??= value;
  return warnAboutLines(path, text);
}

function warnAboutLines(path: string, text: string): string[] {
  const names = new Set<string>();
  return text.split("\n").flatMap((line, index) => {
    const [, name, value = ""] = /^\s*(?:export\s+)?(\w+)\s*=\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || !isBeginningOfLine(text, index)) return [];
    const isRepeated = names.has(name);
    names.add(name);
    const where = `${path}, line ${index + 1}: ${name}`;
    return [
      ...(isRepeated ? [`${where} is set again, and this value counts`] : []),
      ...(/^[^"'`#\s][^#]*\S#/.test(value) ? [`${where} ends at the #: put the value in quotes`] : []),
    ];
  });
}

/** Returns the numbers of the lines that Node's parser ignores, and of lines in the form `NAME: value`. */
export function findBrokenLines(text: string): number[] {
  return text.split("\n").flatMap((line, index) => {
    const isSuspicious = !/^\s*(#|$)/.test(line) && !/^\s*[^=\s:][^=:]*=/.test(line);
    return isSuspicious && isBeginningOfLine(text, index) ? [index + 1] : [];
  });
}

/** Whether the line starts outside a value of several lines. */
function isBeginningOfLine(text: string, index: number): boolean {
  return PROBE in parseEnv(text.split("\n").toSpliced(index, 0, `${PROBE}=`).join("\n"));
}
