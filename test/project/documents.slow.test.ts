import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { VARIABLE_NAMES } from "../../src/config.ts";
import { FAULTS } from "../support/upstream-faults.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

it("the tables of README.md and docs/operating.md have every variable once", () => {
  const rows = [...(read("README.md") + read("docs/operating.md")).matchAll(/^\|`([A-Z_]+)`\|/gm)];
  expect(rows.map(([, name]) => name).sort()).toEqual([...VARIABLE_NAMES].sort());
});

/**
 * The tables of docs/faults.md: a row for all faults with the same outcome. The last column is for
 * collects only.
 */
function renderTables(): string {
  return FAULTS.map(({ title, rows }) => {
    const hasChain = rows.some(({ chain }) => chain !== "untouched");
    const toRow = (cells: readonly string[]) => `|${cells.join("|")}|`;
    const byOutcome = Map.groupBy(rows, ({ answer, time, chain }) =>
      toRow([answer, time in AMPLE_DEADLINES ? `\`${time}\`` : time, ...(hasChain ? [chain] : [])]),
    );
    return [
      `## ${title}`,
      "",
      toRow(["Faults", "Answer", "Within", ...(hasChain ? ["Vault and chain afterwards"] : [])]),
      `|${"---|".repeat(hasChain ? 4 : 3)}`,
      ...[...byOutcome].map(
        ([outcome, faults]) => `|${faults.map(({ fault }) => fault).join("; ")}${outcome}`,
      ),
    ].join("\n");
  }).join("\n\n");
}

it("docs/faults.md has the tables of upstream faults", () => {
  expect(read("docs/faults.md")).toContain(renderTables());
});

const DOCUMENTS = globSync(["*.md", "docs/*.md", "examples/*.md", "changes/*.md"], { cwd: ROOT });

/** The anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (path: string): string[] =>
  [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );

it.each(DOCUMENTS)("the files of code that %s names exist", (path) => {
  for (const [, file] of read(path).matchAll(/`((?:src|test|bench|scripts)\/[\w./-]+\.\w+)`/g))
    expect([file, existsSync(join(ROOT, file!))]).toEqual([file, true]);
});

it.each(DOCUMENTS)("the links of %s lead to files, and to headings in them", (path) => {
  // Changes move to CHANGELOG.md.
  const folder = path.startsWith("changes/") ? "" : dirname(path);
  for (const [, target] of read(path).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)) {
    const [file, anchor] = target!.split("#");
    const linked = file!.startsWith("/") ? file!.slice(1) : join(folder, file!);
    const inDocument = file === "" ? path : linked;
    expect([target, existsSync(join(ROOT, inDocument))]).toEqual([target, true]);
    if (anchor !== undefined) expect(anchorsOf(inDocument), target).toContain(anchor);
  }
});
