/**
 * Names the files that changes/ lacks: part of `npm run lint`. What callers or operators see must
 * not change without one.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** The rows of the tables that scripts/print-variables.ts prints. */
const variablesIn = (document: string) =>
  (document.match(/^\|`[A-Z_]+`\|.*$/gm) ?? []).toSorted().join("\n");

/** Each document with the readers of a part of it. */
const DOCUMENTS: readonly (readonly [path: string, readers: string, part?: typeof variablesIn])[] =
  [
    ["schema.graphql", "callers"],
    ["openapi.json", "callers"],
    ["README.md", "operators", variablesIn],
    ["docs/operating.md", "operators", variablesIn],
  ];

/** Undefined if Git fails. */
function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync("git", args, { encoding: "utf8" });
  return status === 0 ? stdout.trimEnd() : undefined;
}

/**
 * The commit with which to compare: where this branch left main. On main, the last release, or the
 * last commit if there is none. Undefined without Git's history.
 */
function findBase(): string | undefined {
  const head = git("rev-parse", "HEAD");
  const main = ["origin/main", "main"].find((ref) => git("rev-parse", "--verify", ref));
  const base = main && git("merge-base", "HEAD", main);
  if (base && base !== head) return base;
  return git("describe", "--tags", "--abbrev=0", "--match", "v*") ?? head;
}

const base = findBase();
if (base !== undefined) {
  const written = [
    git("diff", "--name-only", "--no-renames", "--diff-filter=AM", base, "--", "changes"),
    git("ls-files", "--others", "--exclude-standard", "--", "changes"),
    // A release moves the files into it.
    git("diff", "--name-only", base, "--", "CHANGELOG.md"),
  ].join("\n");
  for (const [path, readers, part = (document: string) => document] of DOCUMENTS) {
    const before = git("show", `${base}:${path}`) ?? "";
    if (part(before) === part(readFileSync(path, "utf8").trimEnd())) continue;
    if (new RegExp(`-${readers}-|^CHANGELOG`, "m").test(written)) continue;
    console.error(
      `${path} has changed since ${base.slice(0, 12)}, and changes/ has no new file for ${readers}: add one such as changes/new-${readers}-what.md (CONTRIBUTING.md, "How to add")`,
    );
    process.exitCode = 1;
  }
}
