/**
 * Writes the files that follow from the code: `npm run schema`. With `--check`, as `npm run lint`
 * calls it, names those that are not up to date instead.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schema, SDL } from "../src/schema/schema.ts";
import { graphqlTypes, restTypes } from "./print-client-types.ts";
import { withErrors } from "./print-errors.ts";
import { DEFAULT_DOCUMENT } from "./print-openapi.ts";
import { withVariables } from "./print-variables.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** Each file with its new text. The last ones read the first ones. */
const FILES: readonly (readonly [path: string, print: () => string | Promise<string>])[] = [
  ["schema.graphql", () => SDL],
  ["openapi.json", () => `${JSON.stringify(DEFAULT_DOCUMENT, null, 2)}\n`],
  ["docs/errors.md", () => withErrors(read("docs/errors.md"))],
  ["README.md", () => withVariables("README.md", read("README.md"))],
  ["docs/operating.md", () => withVariables("docs/operating.md", read("docs/operating.md"))],
  ["examples/clients/openapi.ts", () => restTypes(DEFAULT_DOCUMENT)],
  ["examples/clients/graphql.ts", () => graphqlTypes(schema)],
  ["examples/graphql/schema.d.ts", printTadaTypes],
];

/** The types that gql.tada generates from schema.graphql. */
function printTadaTypes(): string {
  const folder = mkdtempSync(join(tmpdir(), "tributary-"));
  try {
    const output = join(folder, "schema.d.ts");
    const tada = join(ROOT, "node_modules/.bin/gql.tada");
    execFileSync(tada, ["generate-output", "--output", output], { cwd: ROOT, stdio: "pipe" });
    return readFileSync(output, "utf8");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const checks = process.argv.includes("--check");
for (const [path, print] of FILES) {
  const text = await print();
  if (!checks) writeFileSync(join(ROOT, path), text);
  else if (text !== read(path)) {
    console.error(`${path} is not up to date: run npm run schema`);
    process.exitCode = 1;
  }
}
