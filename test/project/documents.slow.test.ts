import { spawnSync } from "node:child_process";
import { cpSync, existsSync, globSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { VARIABLE_NAMES } from "../../src/config.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { FAULTS } from "../support/upstream-faults.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

describe("npm run schema", () => {
  const GENERATED = [
    "schema.graphql",
    "openapi.json",
    "docs/errors.md",
    "README.md",
    "docs/operating.md",
    "examples/clients/openapi.ts",
    "examples/clients/graphql.ts",
    "examples/graphql/schema.d.ts",
  ];

  /** Runs it in a folder, and returns what it prints. */
  function print(folder: string, ...args: string[]) {
    const script = join(folder, "scripts/print-all.ts");
    const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
    return { status, stderr };
  }

  it("--check, a part of npm run lint, finds everything up to date", () => {
    expect(manifest.scripts.lint).toContain("node scripts/print-all.ts --check");
    expect(print(ROOT, "--check")).toEqual({ status: 0, stderr: "" });
  });

  it("updates what --check names", () => {
    const copy = temporaryFolder();
    for (const path of ["src", "scripts", "package.json", "tsconfig.json", ...GENERATED])
      cpSync(join(ROOT, path), join(copy, path), { recursive: true });
    cpSync(join(ROOT, "examples"), join(copy, "examples"), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    for (const path of GENERATED) {
      const text = readFileSync(join(copy, path), "utf8");
      const withoutPort = text.replace(/^\|`(PORT|LOG_LEVEL)`\|.*\n/m, "");
      writeFileSync(join(copy, path), withoutPort === text ? `${text}\n` : withoutPort);
    }
    const stale = GENERATED.map((path) => `${path} is not up to date: run npm run schema\n`);
    expect(print(copy, "--check")).toEqual({ status: 1, stderr: stale.join("") });
    expect(print(copy)).toEqual({ status: 0, stderr: "" });
    for (const path of GENERATED)
      expect(readFileSync(join(copy, path), "utf8"), path).toBe(read(path));
  });
});

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
