import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../../package.json" with { type: "json" };

/** The service's version, as in package.json. */
export const VERSION = manifest.version;

/** The running commit, in 40 hexadecimal digits, or `unknown`. */
export const COMMIT = readCommit(fileURLToPath(new URL("../..", import.meta.url)));

/** Reads the commit from `gitHead` in the folder's package.json, which a build sets, or else from the git checkout. */
export function readCommit(folder: string): string {
  const { gitHead } = JSON.parse(read(folder, "package.json")) as { gitHead?: string };
  if (gitHead) return gitHead;
  try {
    return readHead(resolve(folder, ".git"));
  } catch {
    // No checkout, or one in a format that only git reads.
    return "unknown";
  }
}

/** Reads the checkout's commit from git's files, because the machine may not have git. */
function readHead(git: string): string {
  // In a worktree, `.git` is a file with the path of the git folder. Branches are in a folder shared by all worktrees.
  const worktree = statSync(git).isFile() ? resolve(dirname(git), read(git).slice("gitdir: ".length)) : git;
  const repository = existsSync(resolve(worktree, "commondir"))
    ? resolve(worktree, read(worktree, "commondir"))
    : worktree;
  const head = read(worktree, "HEAD");
  if (!head.startsWith("ref: ")) return head;
  const branch = head.slice("ref: ".length);
  if (existsSync(resolve(repository, branch))) return read(repository, branch);
  const line = read(repository, "packed-refs")
    .split("\n")
    .find((text) => text.endsWith(` ${branch}`));
  return line!.split(" ")[0]!;
}

function read(...path: string[]): string {
  return readFileSync(resolve(...path), "utf8").trim();
}
