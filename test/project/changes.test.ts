import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { assembleChanges } from "../../scripts/assemble-changes.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A folder with a changelog and changes, by file name. */
function project(changelog: string, changes: Readonly<Record<string, string>>): string {
  const root = temporaryFolder();
  mkdirSync(join(root, "changes"));
  writeFileSync(join(root, "CHANGELOG.md"), changelog);
  for (const [name, text] of Object.entries(changes))
    writeFileSync(join(root, "changes", name), text);
  return root;
}

const changelogOf = (root: string) => readFileSync(join(root, "CHANGELOG.md"), "utf8");

const RELEASED = "## 0.1.0\n\nThe first.\n";

it("the changes of a release become a section, by kind and by reader, and their files go", () => {
  const root = project(`# Changelog\n\n${RELEASED}`, {
    "fixed-operators-logs.md": "Defects are logged.\n",
    "new-callers-b.md": "B is new.\n\nIt has two paragraphs.\n",
    "new-callers-a.md": "A is new.\n",
    "breaking-operators-variable.md": "`OLD` is no variable.\n",
  });
  assembleChanges(root, "0.2.0");
  expect(changelogOf(root)).toBe(
    `# Changelog

## 0.2.0

### Breaking

For operators:

- \`OLD\` is no variable.

### New

For callers:

- A is new.
- B is new.

  It has two paragraphs.

### Fixed

For operators:

- Defects are logged.

${RELEASED}`,
  );
  expect(readdirSync(join(root, "changes"))).toEqual([]);
});

it('a section "Unreleased" becomes the version\'s, before the changes from files', () => {
  const root = project(`# Changelog\n\n## Unreleased\n\nBy hand.\n\n${RELEASED}`, {
    "new-callers-a.md": "A is new.",
  });
  assembleChanges(root, "0.2.0");
  expect(changelogOf(root)).toBe(
    `# Changelog\n\n## 0.2.0\n\nBy hand.\n\n### New\n\nFor callers:\n\n- A is new.\n\n${RELEASED}`,
  );
});

it('changes from files go to the lists that "Unreleased" has, after their entries', () => {
  const unreleased =
    "By hand.\n\n### Breaking\n\nFor callers:\n\n- An old break.\n\n### Fixed\n\nFor callers:\n\n- An old fix.\n\nFor operators:\n\n- Another.";
  const root = project(`# Changelog\n\n## Unreleased\n\n${unreleased}\n\n${RELEASED}`, {
    "breaking-operators-a.md": "A new break.",
    "fixed-callers-a.md": "A new fix.",
    "new-callers-a.md": "A is new.",
  });
  assembleChanges(root, "0.2.0");
  expect(changelogOf(root)).toBe(
    `# Changelog

## 0.2.0

By hand.

### Breaking

For callers:

- An old break.

For operators:

- A new break.

### New

For callers:

- A is new.

### Fixed

For callers:

- An old fix.
- A new fix.

For operators:

- Another.

${RELEASED}`,
  );
});

it.each([
  ["another heading", "### Changed\n\nFor callers:\n\n- A."],
  ["a heading twice", "### New\n\nFor callers:\n\n- A.\n\n### New\n\nFor callers:\n\n- B."],
  ["an entry without a reader", "### New\n\n- A."],
])('a release loses nothing of "Unreleased": it refuses %s', (_name, unreleased) => {
  const changelog = `# Changelog\n\n## Unreleased\n\n${unreleased}\n\n${RELEASED}`;
  const root = project(changelog, { "new-callers-a.md": "A is new." });
  expect(() => {
    assembleChanges(root, "0.2.0");
  }).toThrow(/CHANGELOG.md, "Unreleased": expected/);
  expect(changelogOf(root)).toBe(changelog);
  expect(readdirSync(join(root, "changes"))).toEqual(["new-callers-a.md"]);
});

it.each([
  [
    "an unknown kind",
    "0.2.0",
    { "removed-callers-a.md": "A." },
    /changes\/removed-callers-a.md: exp/,
  ],
  ["no reader", "0.2.0", { "new-a.md": "A." }, /changes\/new-a.md: expected a name such as/],
  ["an empty file", "0.2.0", { "new-callers-a.md": "\n" }, /changes\/new-callers-a.md: is empty/],
  ["no change", "0.2.0", {}, /no changes to release/],
  ["no version", "next", { "new-callers-a.md": "A." }, /expected a version, got "next"/],
  ["a version that exists", "0.1.0", { "new-callers-a.md": "A." }, /already has a section 0.1.0/],
])("a release with %s changes no file", (_name, version, changes, message) => {
  const root = project(`# Changelog\n\n${RELEASED}`, changes);
  expect(() => {
    assembleChanges(root, version);
  }).toThrow(message);
  expect(changelogOf(root)).toBe(`# Changelog\n\n${RELEASED}`);
  expect(readdirSync(join(root, "changes"))).toEqual(Object.keys(changes));
});

it("the changes of this project can be assembled", () => {
  const root = temporaryFolder();
  cpSync(join(ROOT, "CHANGELOG.md"), join(root, "CHANGELOG.md"));
  // Git has no folder `changes` right after a release.
  if (existsSync(join(ROOT, "changes")))
    cpSync(join(ROOT, "changes"), join(root, "changes"), { recursive: true });
  else mkdirSync(join(root, "changes"));
  writeFileSync(join(root, "changes/new-callers-planted.md"), "A change.");
  assembleChanges(root, "999.0.0");
  expect(changelogOf(root)).toContain("\n## 999.0.0\n");
});

describe("npm run lint", () => {
  const TABLE = "|Variable|Default|Meaning|\n|---|---|---|\n|`PORT`|4000|port to listen on|\n";

  /** A repository whose branch `topic` has left `main`, and writes into its folder. */
  function repository() {
    const root = project(`# Changelog\n\n${RELEASED}`, { "new-callers-old.md": "Old.\n" });
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example", ...args], {
        cwd: root,
      });
    const write = (path: string, text: string) => {
      mkdirSync(join(root, path, ".."), { recursive: true });
      writeFileSync(join(root, path), text);
    };
    write("schema.graphql", "type Query { a: Int }\n");
    write("openapi.json", "{}\n");
    write("README.md", `# Readme\n\n${TABLE}\nText.\n`);
    write("docs/operating.md", "# Operating\n");
    git("init", "--quiet", "--initial-branch=main");
    git("add", ".");
    git("commit", "--quiet", "--message=First");
    git("switch", "--quiet", "--create", "topic");
    const commit = () => git("commit", "--quiet", "--all", "--message=Next");
    const check = () => {
      const script = join(ROOT, "scripts/check-changes.ts");
      return spawnSync(process.execPath, [script], { cwd: root, encoding: "utf8" });
    };
    return { git, write, commit, check };
  }

  it("has no need of a file in changes/ where neither callers nor operators see a change", () => {
    expect(manifest.scripts.lint).toContain("node scripts/check-changes.ts");
    const { write, commit, check } = repository();
    write("README.md", `# New\n\n${TABLE}\nNew text.\n`);
    commit();
    expect(check()).toMatchObject({ status: 0, stderr: "" });
  });

  it.each([
    ["schema.graphql", "type Query { b: Int }\n", "callers", "operators"],
    ["openapi.json", "[]\n", "callers", "operators"],
    ["README.md", `# Readme\n\n${TABLE.replace("4000", "80")}\nText.\n`, "operators", "callers"],
    ["docs/operating.md", `# Operating\n\n${TABLE}`, "operators", "callers"],
  ])("names the file in changes/ that a change of %s needs", (path, text, readers, others) => {
    const { write, commit, check } = repository();
    write(path, text);
    for (const isCommitted of [false, true]) {
      if (isCommitted) commit();
      const { status, stderr } = check();
      expect([status, stderr.trim().split("\n")]).toEqual([
        1,
        [expect.stringMatching(new RegExp(`^${path} has .* no new file for ${readers}: add`))],
      ]);
    }
    write(`changes/fixed-${others}-b.md`, "For others.\n");
    expect(check().status).toBe(1);
    write(`changes/fixed-${readers}-b.md`, "For them.\n");
    expect(check()).toMatchObject({ status: 0, stderr: "" });
  });

  it("compares main with the last release, whose commit moves the files away", () => {
    const { git, write, commit, check } = repository();
    git("switch", "--quiet", "main");
    git("tag", "v0.1.0");
    write("schema.graphql", "type Query { b: Int }\n");
    commit();
    expect(check().status).toBe(1);
    write("CHANGELOG.md", "# Changelog\n\n## 0.2.0\n\nB.\n");
    commit();
    expect(check().status).toBe(0);
  });

  it("asks for no file in changes/ without Git's history", () => {
    const root = temporaryFolder();
    const script = join(ROOT, "scripts/check-changes.ts");
    const env = { ...process.env, GIT_CEILING_DIRECTORIES: join(root, "..") };
    const { status } = spawnSync(process.execPath, [script], { cwd: root, env });
    expect(status).toBe(0);
  });
});
