import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../../package.json" with { type: "json" };

export const VERSION = manifest.version;

/** The running commit, in 40 hexadecimal digits, or `unknown`. */
export const COMMIT = readCommit(fileURLToPath(new URL("../..", import.meta.url)));

/**
 * Reads the commit from `gitHead` in the folder's package.json. If a build has not added it, asks
 * git.
 */
export function readCommit(folder: string): string {
  const { gitHead } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    gitHead?: string;
  };
  if (gitHead) return gitHead;
  try {
    // Without `--git-dir`, git would search the parent folders, and refuse a checkout that another
    // user owns.
    const args = ["--git-dir", join(folder, ".git"), "rev-parse", "--verify", "HEAD"];
    return execFileSync("git", args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
}
