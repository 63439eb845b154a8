import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readCommit } from "../../src/observability/version.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const OTHER = "f".repeat(40);

/** Writes these files, with a package.json without a commit, and returns their folder. */
function folderWith(files: Record<string, string>): string {
  const folder = temporaryFolder();
  for (const [path, text] of Object.entries({ "package.json": "{}", ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

describe("the commit", () => {
  it.each([
    ["set by the build in package.json", { "package.json": `{"gitHead":"${COMMIT}"}`, ".git/HEAD": OTHER }],
    ["checked out without a branch", { ".git/HEAD": `${COMMIT}\n` }],
    ["of a branch", { ".git/HEAD": "ref: refs/heads/a/b\n", ".git/refs/heads/a/b": `${COMMIT}\n` }],
    [
      "of a branch in packed-refs",
      {
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/packed-refs": `# pack-refs with: peeled fully-peeled sorted \n${OTHER} refs/heads/domain\n${COMMIT} refs/heads/main\n`,
      },
    ],
    [
      "of a worktree",
      {
        ".git": "gitdir: main/.git/worktrees/w\n",
        "main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n",
        "main/.git/worktrees/w/commondir": "../..\n",
        "main/.git/refs/heads/w": `${COMMIT}\n`,
      },
    ],
  ])("is the one %s", (_title, files) => {
    expect(readCommit(folderWith(files))).toBe(COMMIT);
  });

  it.each([
    ["outside a checkout", {}],
    ["before a first commit", { ".git/HEAD": "ref: refs/heads/main\n" }],
    [
      "of branches that only git can read",
      { ".git/HEAD": "ref: refs/heads/.invalid\n", ".git/packed-refs": "# pack-refs with: sorted\n" },
    ],
  ])("is unknown %s", (_title, files) => {
    expect(readCommit(folderWith(files))).toBe("unknown");
  });
});
