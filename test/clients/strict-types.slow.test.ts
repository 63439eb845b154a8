import { readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const FOLDER = new URL("../../examples/clients/", import.meta.url).pathname;

describe("the types generated for clients", () => {
  it("compile strictly, together with the examples that use them", () => {
    const files = readdirSync(FOLDER).filter((name) => name.endsWith(".ts"));
    const program = ts.createProgram(
      files.map((name) => join(FOLDER, name)),
      {
        target: ts.ScriptTarget.ESNext,
        module: ts.ModuleKind.NodeNext,
        types: ["node"],
        noEmit: true,
        strict: true,
        noUncheckedIndexedAccess: true,
        exactOptionalPropertyTypes: true,
        noUnusedLocals: true,
        allowImportingTsExtensions: true,
        // Only for the packages: the generated types are no .d.ts files.
        skipLibCheck: true,
      },
    );
    const problems = ts
      .getPreEmitDiagnostics(program)
      .map(({ file, messageText }) => [
        file?.fileName,
        ts.flattenDiagnosticMessageText(messageText, "\n"),
      ]);
    expect(problems).toEqual([]);
  });
});
