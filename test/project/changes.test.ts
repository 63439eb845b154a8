import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
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
