import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorTable } from "../../scripts/print-errors.ts";

it("docs/errors.md has the table of error codes (`npm run schema` updates it)", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  expect(page.split("## Codes\n\n")[1]).toBe(errorTable());
});
