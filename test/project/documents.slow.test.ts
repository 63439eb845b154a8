import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FAULTS } from "../support/upstream-faults.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

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
