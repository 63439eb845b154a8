/** Prints the tables of variables of README.md and docs/operating.md. */
import { VARIABLES } from "../src/commands/help.ts";

const HEAD = "|Variable|Default|Meaning|\n|---|---|---|\n";
/** The first variable of each group in docs/operating.md. README.md has those before. */
const GROUPS: Readonly<Record<string, string>> = {
  BASE_PATH: "Where it listens",
  RATE_LIMIT_MAX: "Callers",
  SOCIAL_TIMEOUT_MS: "The social network",
  ESCROW_SEED: "The chain and collects",
};

/** The rows of the variables of each group, the required ones first. */
function rowsOfGroups(): string[] {
  const groups: { row: string; isOptional: boolean }[][] = [[]];
  for (const { name, byDefault, meaning } of VARIABLES) {
    if (name in GROUPS) groups.push([{ row: `|**${GROUPS[name]}**|||\n`, isOptional: false }]);
    const row = `|\`${name}\`|${byDefault}|${meaning}|\n`;
    groups.at(-1)!.push({ row, isOptional: byDefault !== "required" });
  }
  return groups.map((rows) =>
    rows
      .toSorted((a, b) => Number(a.isOptional) - Number(b.isOptional))
      .map(({ row }) => row)
      .join(""),
  );
}

/** Returns the document with the tables of today's variables. */
export function withVariables(path: string, text: string): string {
  const [before, table] = text.split(/(?=^\|Variable\|)/m);
  const after = table!.slice(table!.indexOf("\n\n"));
  const [first, ...others] = rowsOfGroups();
  const rows = path === "README.md" ? first! : others.join("");
  return `${before!}${HEAD}${rows.trimEnd()}${after}`;
}
