/** Prints the tables of variables of README.md and docs/operating.md. */
import { GROUPS, Secrets, Settings } from "../src/variables.ts";

type Group = keyof typeof GROUPS;

const HEAD = "|Variable|Default|Meaning|\n|---|---|---|\n";
/** The documents, and the groups of variables in each. */
const GROUPS_OF_FILES: Readonly<Record<string, readonly Group[]>> = {
  "README.md": ["first"],
  "docs/operating.md": ["listening", "callers", "network", "chain"],
};

/**
 * A Markdown table of the variables of `groups`, the required ones first, with a heading for each
 * group if there are many.
 */
function variableTable(groups: readonly Group[]): string {
  const variables = Object.entries({ ...Secrets.shape, ...Settings.shape });
  const sections = groups.map((group) => {
    const heading = groups.length > 1 ? `|**${GROUPS[group]}**|||\n` : "";
    const rows = variables
      .filter(([, variable]) => variable.meta()!.group === group)
      .map(([name, variable]) => {
        const { success, data } = variable.safeParse(undefined);
        const byDefault = success ? toText(data) : "required";
        const row = `|\`${name}\`|${byDefault}|${variable.meta()!.meaning as string}|\n`;
        return { row, isOptional: success };
      })
      .toSorted((a, b) => Number(a.isOptional) - Number(b.isOptional));
    return heading + rows.map(({ row }) => row).join("");
  });
  return HEAD + sections.join("");
}

/** Returns the document with the tables of today's variables. */
export function withVariables(path: string, text: string): string {
  const [before, table] = text.split(/(?=^\|Variable\|)/m);
  const after = table!.slice(table!.indexOf("\n\n"));
  return `${before!}${variableTable(GROUPS_OF_FILES[path]!).trimEnd()}${after}`;
}

function toText(value: unknown): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return "none";
  return `${value as string | number}` || "empty";
}
