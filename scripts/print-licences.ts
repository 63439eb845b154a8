/** Writes the licences of what runs in production to docs/dependencies.md: `npm run licences`. */
import { readFileSync, writeFileSync } from "node:fs";

interface Locked {
  readonly dev?: boolean;
  readonly license?: string;
}

/** Of packages that name none in their package.json: what their LICENSE file says. */
const UNNAMED: Readonly<Record<string, string>> = { eyes: "MIT", "text-encoding-utf-8": "Unlicense" };

const HEADING = "## Licences\n";

/** A line for each licence, with the names of the packages that have it: all that package-lock.json does not mark as of development. */
export function licenceTable(packages: Readonly<Record<string, Locked>>): string {
  const byLicence = new Map<string, Set<string>>();
  for (const [path, { dev, license }] of Object.entries(packages)) {
    if (path === "" || dev) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const licence = license ?? UNNAMED[name] ?? "none";
    byLicence.set(licence, (byLicence.get(licence) ?? new Set()).add(name));
  }
  const rows = [...byLicence]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([licence, names]) => `| ${licence} | ${[...names].sort().join(", ")} |`);
  return ["| Licence | Packages |", "|---|---|", ...rows, ""].join("\n");
}

if (import.meta.main) {
  const file = new URL("../docs/dependencies.md", import.meta.url);
  const { packages } = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as {
    packages: Record<string, Locked>;
  };
  const [before] = readFileSync(file, "utf8").split(HEADING);
  writeFileSync(file, `${before}${HEADING}\n${licenceTable(packages)}`);
}
