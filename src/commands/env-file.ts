import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { isReadableByAll } from "./risky-variables.ts";

/**
 * Adds a file's variables to this process, if the file exists. Variables that the process already
 * has take precedence, unless they are empty. Returns warnings, without values. Throws Node's error
 * if the file cannot be read.
 */
export function loadEnvFile(path: string): string[] {
  if (!existsSync(path)) return [];
  // Some editors put a byte-order mark first.
  const variables = parseEnv(readFileSync(path, "utf8").replace(/^\uFEFF/, ""));
  for (const [name, value] of Object.entries(variables)) process.env[name] ||= value;
  const key = variables.FEE_PAYER_KEYPAIR;
  return key && !existsSync(key) && isReadableByAll(path)
    ? [
        `${path} has the fee payer's key, and every user of this machine can read it: run chmod 600 ${path}`,
      ]
    : [];
}
