import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorTable } from "../../scripts/print-errors.ts";
import { withVariables } from "../../scripts/print-variables.ts";
import { VARIABLE_NAMES } from "../../src/config.ts";
import { FAULTS } from "../support/upstream-faults.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

it("docs/errors.md has the table of error codes (`npm run schema` updates it)", () => {
  expect(read("docs/errors.md").split("## Codes\n\n")[1]).toBe(errorTable());
});

it.each(["README.md", "docs/operating.md"])(
  "%s has the table of variables (`npm run schema` updates it)",
  (path) => {
    const text = read(path);
    expect(text).toBe(withVariables(path, text));
  },
);

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
