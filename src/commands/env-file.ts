import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { codeOf } from "../observability/thrown.ts";
import { isReadableByAll } from "./risky-variables.ts";

/**
 * Adds a file's variables to this process, if the file exists. Variables that the process already
 * has take precedence, unless they are empty. Returns warnings, without values. Throws Node's error
 * if the file cannot be read.
 */
export function loadEnvFile(path: string): string[] {
  let text: string;
  try {
    // Some editors put a byte-order mark first.
    text = readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  const variables = parseEnv(text);
  for (const [name, value] of Object.entries(variables)) process.env[name] ||= value;
  const key = variables.FEE_PAYER_KEYPAIR;
  return key && !existsSync(key) && isReadableByAll(path)
    ? [
        `${path} has the fee payer's key, and every user of this machine can read it: run chmod 600 ${path}`,
      ]
    : [];
}
