import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readCommit } from "../../src/observability/version.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const git = (folder: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();

/** A folder with this package.json. */
function folderWith(manifest: object): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  return folder;
}

/** A checkout with one commit, of a branch. */
function checkout(): string {
  const folder = folderWith({});
  git(folder, "init");
  git(folder, "add", ".");
  git(folder, "commit", "--message", "first");
  return folder;
}

describe("the commit", () => {
  it("is the one set by the build in package.json", () => {
    expect(readCommit(folderWith({ gitHead: "0123" }))).toBe("0123");
  });

  it("is the one that is checked out: of a branch, without a branch, and in a worktree", () => {
    const folder = checkout();
    const commit = git(folder, "rev-parse", "HEAD");
    expect(commit).toMatch(/^[0-9a-f]{40}$/);
    expect(readCommit(folder)).toBe(commit);
    git(folder, "worktree", "add", "tree");
    expect(readCommit(join(folder, "tree"))).toBe(commit);
    git(folder, "checkout", "--detach");
    expect(readCommit(folder)).toBe(commit);
  });

  it("is unknown outside a checkout, also in a folder of another checkout, and before a first commit", () => {
    expect(readCommit(folderWith({}))).toBe("unknown");
    const inner = join(checkout(), "inner");
    mkdirSync(inner);
    writeFileSync(join(inner, "package.json"), "{}");
    expect(readCommit(inner)).toBe("unknown");
    const empty = folderWith({});
    git(empty, "init");
    expect(readCommit(empty)).toBe("unknown");
  });
});
