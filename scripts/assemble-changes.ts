/**
 * Moves the files of changes/ into CHANGELOG.md, as the section of a version:
 * `node scripts/assemble-changes.ts 0.3.0`.
 */
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const KINDS = { breaking: "Breaking", new: "New", fixed: "Fixed" };
const AUDIENCES = { callers: "For callers:", operators: "For operators:" };
const NAME = new RegExp(
  `^(?<kind>${Object.keys(KINDS).join("|")})-(?<audience>${Object.keys(AUDIENCES).join("|")})-[a-z0-9-]+\\.md$`,
);

interface Change {
  readonly kind: string;
  readonly audience: string;
  readonly text: string;
}

/**
 * Assembles the changes in the folder `root`. The version's section replaces the section
 * "Unreleased", and keeps its text and its changes, each list before the new ones; without this
 * section, it becomes the first one.
 */
export function assembleChanges(root: string, version: string): void {
  const paths = globSync("changes/*", { cwd: root })
    .sort()
    .map((path) => join(root, path));
  const changelogPath = join(root, "CHANGELOG.md");
  const changelog = readFileSync(changelogPath, "utf8");
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`expected a version, got "${version}"`);
  if (changelog.includes(`\n## ${version}\n`))
    throw new Error(`CHANGELOG.md already has a section ${version}`);

  const [before, ...sections] = changelog.split(/^(?=## )/m);
  const isUnreleased = sections[0]?.startsWith("## Unreleased\n");
  const unreleased = isUnreleased ? sections.shift()!.split("\n").slice(1).join("\n").trim() : "";
  const blocks = toBlocks(unreleased, paths.map(readChange));
  if (blocks.length === 0) throw new Error("no changes to release");
  const section = `${[`## ${version}`, ...blocks].join("\n\n")}\n`;
  writeFileSync(changelogPath, [`${before!}${section}`, ...sections].join("\n"));
  for (const path of paths) rmSync(path);
}

function readChange(path: string): Change {
  const { kind, audience } = NAME.exec(basename(path))?.groups ?? {};
  if (kind === undefined || audience === undefined)
    throw new Error(
      `changes/${basename(path)}: expected a name such as fixed-callers-empty-pages.md: ${Object.keys(KINDS).join(", ")}, then ${Object.keys(AUDIENCES).join(" or ")}`,
    );
  const text = readFileSync(path, "utf8").trim();
  if (text === "") throw new Error(`changes/${basename(path)}: is empty`);
  return { kind, audience, text };
}

/**
 * The text before the first heading, then the headings, each followed by its lists; without empty
 * ones. Throws if this would lose text of `unreleased`.
 */
function toBlocks(unreleased: string, changes: readonly Change[]): string[] {
  const [text = "", ...parts] = `\n${unreleased}`.split(/\n(?=### )/);
  const blocksWith = (newChanges: readonly Change[]) => [
    text.trim(),
    ...Object.entries(KINDS).flatMap(([kind, heading]) => {
      const part = parts.find((each) => each.startsWith(`### ${heading}\n`)) ?? "";
      const lists = Object.entries(AUDIENCES).flatMap(([audience, title]) => {
        const items = newChanges
          .filter((change) => change.kind === kind && change.audience === audience)
          .map((change) => `- ${change.text.replaceAll(/\n(?=.)/g, "\n  ")}`);
        const list = [listOf(part, title), ...items].filter(Boolean).join("\n");
        return list ? [title, list] : [];
      });
      return lists.length > 0 ? [`### ${heading}`, ...lists] : [];
    }),
  ];
  const toText = (blocks: readonly string[]) => blocks.filter(Boolean).join("\n\n");
  if (toText(blocksWith([])) !== unreleased)
    throw new Error(
      `CHANGELOG.md, "Unreleased": expected a text, then lists after ${Object.values(KINDS).join(", ")}, each after ${Object.values(AUDIENCES).join(" or ")}`,
    );
  return blocksWith(changes).filter(Boolean);
}

/** The list after a title in the text of a heading; empty if there is none. */
function listOf(part: string, title: string): string {
  const [, list = ""] = part.split(`\n${title}\n`);
  return list.split(/^For /m, 1)[0]!.trim();
}

if (import.meta.main) {
  try {
    assembleChanges(process.cwd(), process.argv[2] ?? "");
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}
