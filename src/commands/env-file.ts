import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { ConfigError } from "../config.ts";

/** A name that no file has. */
const PROBE = "TRIBUTARY_BEGINNING_OF_A_LINE";

/**
 * Adds the variables of a file to those of this process, which take precedence. Without a file it does nothing.
 *
 * @throws {ConfigError} for a file that cannot be read, and for lines that Node would skip silently.
 */
export function loadEnvFile(path: string): void {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    throw new ConfigError([`${path} cannot be read (${code}): expected a file of NAME=value lines`]);
  }
  const problems = findBrokenLines(text).map(
    (number) => `${path}, line ${number}: expected NAME=value (the line is not shown here)`,
  );
  if (problems.length > 0) throw new ConfigError(problems);
  process.loadEnvFile(path);
}

/** The numbers of the lines from which Node's parser reads nothing, and of those in the form `NAME: value`. */
export function findBrokenLines(text: string): number[] {
  const lines = text.split("\n");
  /** Whether a line begins here; not inside a value of several lines. */
  const isBeginning = (index: number) => PROBE in parseEnv(lines.toSpliced(index, 0, `${PROBE}=`).join("\n"));
  return lines.flatMap((line, index) => {
    const isSuspicious = !/^\s*(#|$)/.test(line) && !/^\s*[^=\s:][^=:]*=/.test(line);
    return isSuspicious && isBeginning(index) ? [index + 1] : [];
  });
}
