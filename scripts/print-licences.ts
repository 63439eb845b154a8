/** Writes the licences of the production dependencies to docs/dependencies.md: `npm run licences`. */
import { readFileSync, writeFileSync } from "node:fs";

/** A package in package-lock.json. */
interface LockedPackage {
  readonly dev?: boolean;
  readonly license?: string;
}

/** Licences from the LICENSE file of packages that have none in package.json. */
const LICENCES_FROM_FILES: Readonly<Record<string, string>> = {
  eyes: "MIT",
  "text-encoding-utf-8": "Unlicense",
};

const HEADING = "## Licences\n";

/** A Markdown table with a row for each licence and its packages, without dev dependencies. */
export function licenceTable(packages: Readonly<Record<string, LockedPackage>>): string {
  const byLicence = new Map<string, Set<string>>();
  for (const [path, { dev, license }] of Object.entries(packages)) {
    if (path === "" || dev) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const licence = license ?? LICENCES_FROM_FILES[name] ?? "none";
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
    packages: Record<string, LockedPackage>;
  };
  const [before] = readFileSync(file, "utf8").split(HEADING);
  writeFileSync(file, `${before}${HEADING}\n${licenceTable(packages)}`);
}
