import { execFile } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  scripts: { lint: string };
};
/** The first part of `npm run lint`, which checks imports. The other parts take a minute. */
const RULES = `node_modules/.bin/${/^depcruise [^&]+/.exec(scripts.lint)![0]}`;

/** Runs a command, and resolves with its exit code and output. */
function run(
  command: string,
  args: string[],
  cwd: string,
): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(command, args, { cwd }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode!, output: stripVTControlCharacters(stdout + stderr) });
    });
  });
}

describe("the import rules", () => {
  /** Folders that must not import each other in this direction. */
  const FORBIDDEN: readonly (readonly [from: string, to: string])[] = [
    ["contract", "observability"],
    ["observability", "contract"],
    ["upstream", "social"],
    ["social", "chain"],
    ["chain/balances", "social"],
    ["chain/balances", "chain/units"],
    ["chain/balances", "chain/collect"],
    ["chain/units", "chain/collect"],
    ["chain/primitives", "chain/rpc"],
    ["chain/rpc", "chain/launchpad"],
    ["chain/launchpad", "chain/collect"],
    ["chain/collect", "resolvers"],
    ["resolvers", "schema"],
    ["schema", "graphql"],
    ["graphql", "rest"],
    ["graphql/limits", "http/rate-limit"],
    ["rest", "http"],
    ["http", "sandbox"],
    ["http/pages", "sandbox"],
    ["checks", "http"],
    ["sandbox", "social"],
    ["sandbox/rpc", "http"],
  ];
  /** Files directly in src, and folders they must not import. */
  const FORBIDDEN_IN_ROOT = [
    ["config.ts", "chain/collect"],
    ["gateway.ts", "sandbox"],
    ["main.ts", "chain"],
  ] as const;

  // One copy of src with all violations, so that parallel tests never see them.
  let copy: string;
  let check: { code: number; output: string };

  beforeAll(async () => {
    copy = temporaryFolder();
    for (const name of ["src", "package.json", "tsconfig.json", ".dependency-cruiser.js"])
      cpSync(join(ROOT, name), join(copy, name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));

    const plant = (file: string, text: string) => {
      mkdirSync(dirname(join(copy, file)), { recursive: true });
      writeFileSync(join(copy, file), text);
    };
    // Every violation imports a planted file: renaming files of src breaks no case.
    const PLANTED = "export const planted = 1;\nexport type Planted = number;\n";
    for (const folder of new Set([...FORBIDDEN.flat(), "chain/collect"]))
      plant(`src/${folder}/planted.ts`, PLANTED);
    for (const [from, to] of FORBIDDEN) {
      const target = `${"../".repeat(from.split("/").length)}${to}/planted.ts`;
      const name = to.replace("/", "-");
      plant(
        `src/${from}/value-of-${name}.ts`,
        `import { planted } from "${target}";\nvoid planted;\n`,
      );
      plant(
        `src/${from}/type-of-${name}.ts`,
        `import type { Planted } from "${target}";\nlet _: Planted;\n`,
      );
    }
    for (const [file, to] of FORBIDDEN_IN_ROOT) {
      appendFileSync(
        join(copy, "src", file),
        `import type { Planted } from "./${to}/planted.ts";\n`,
      );
    }
    appendFileSync(join(copy, "src/main.ts"), 'import "./sandbox/planted.ts";\n');
    plant("src/http/of-main.ts", 'import type {} from "../main.ts";\n');
    plant(
      "src/new-folder/planted.ts",
      'import { planted } from "../chain/planted.ts";\nvoid planted;\n',
    );
    plant("test/planted.ts", PLANTED);
    plant(
      "src/http/of-a-test.ts",
      'import type { Planted } from "../../test/planted.ts";\nlet _: Planted;\n',
    );
    plant("bench/planted.ts", PLANTED);
    plant(
      "bench/of-a-test.ts",
      'import type { Planted } from "../test/planted.ts";\nlet _: Planted;\n',
    );
    plant(
      "test/support/of-bench.ts",
      'import type { Planted } from "../../bench/planted.ts";\nlet _: Planted;\n',
    );
    plant("src/social/egg.ts", 'import type { Hen } from "./hen.ts";\nexport type Egg = Hen[];\n');
    plant(
      "src/social/hen.ts",
      'import type { Egg } from "./egg.ts";\nexport type Hen = { of: Egg };\n',
    );

    for (const folder of ["bench", "scripts"]) {
      plant(`${folder}/egg.ts`, 'import type { Hen } from "./hen.ts";\nexport type Egg = Hen[];\n');
      plant(
        `${folder}/hen.ts`,
        'import type { Egg } from "./egg.ts";\nexport type Hen = { of: Egg };\n',
      );
    }

    check = await run("sh", ["-c", RULES], copy);
  });

  it("make `npm run lint` fail", () => {
    expect(check.code).not.toBe(0);
  });

  it.each(["bench", "scripts"])("reject a cycle in %s", (folder) => {
    expect(check.output).toMatch(
      new RegExp(`error no import cycles: ${folder}/(egg|hen)\\.ts → \\n +${folder}/(egg|hen)`),
    );
  });

  it.each(FORBIDDEN)("keep %s from importing %s, as a value and as a type", (from, to) => {
    for (const kind of ["value", "type"]) {
      const file = `src/${from}/${kind}-of-${to.replace("/", "-")}.ts`;
      expect(check.output).toMatch(
        new RegExp(
          `error ${from.split("/")[0]!}\\S* imports only .*: ${file} → src/${to}/planted.ts`,
        ),
      );
    }
  });

  it.each(FORBIDDEN_IN_ROOT)("keep %s from importing %s", (file, to) => {
    expect(check.output).toMatch(
      new RegExp(`error ${file} imports only .*: src/${file} → src/${to}/planted.ts`),
    );
  });

  it.each([
    ["an import of main.ts", /error http imports only .*: src\/http\/of-main\.ts → src\/main\.ts/],
    [
      "a static import of the sandbox",
      /error main\.ts imports the sandbox dynamically: src\/main\.ts → /,
    ],
    [
      "a folder without a rule",
      /error every file of src is covered .*: src\/new-folder\/planted\.ts → /,
    ],
    [
      "an import of a test",
      /error src imports nothing from test.*: src\/http\/of-a-test\.ts → test\/planted/,
    ],
    [
      "a test in a benchmark",
      /error bench imports nothing of test but .*: bench\/of-a-test\.ts → test\/planted/,
    ],
    [
      "a benchmark in what tests share",
      /error test\/support imports nothing from bench: test\/support\/of-bench\.ts → bench\/planted/,
    ],
    [
      "a cycle of types",
      /error no import cycles: src\/social\/(egg|hen)\.ts → \n +src\/social\/(egg|hen)/,
    ],
  ])("reject %s", (_name, violation) => {
    expect(check.output).toMatch(violation);
  });

  it("hold in src, bench, scripts and test/support", async () => {
    expect(await run("sh", ["-c", RULES], ROOT)).toMatchObject({
      code: 0,
      output: expect.stringContaining("no dependency violations found"),
    });
  });
});

describe("the layout", () => {
  /** Paths of the code files below a folder of the project. */
  const codeIn = (folder: string) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => [".ts", ".js"].includes(extname(path)))
      .map((path) => join(folder, path));

  it("has only the process, its configuration and its composition in src itself", () => {
    const files = readdirSync(join(ROOT, "src"), { withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(files.map(({ name }) => name).sort()).toEqual([
      "config.ts",
      "gateway.ts",
      "keypair.ts",
      "main.ts",
      "services.ts",
      "start.js",
      "variables.ts",
    ]);
  });

  it("gives every test file a unique name", () => {
    const names = codeIn("test").filter((file) => file.endsWith(".test.ts"));
    const shared = Object.values(Object.groupBy(names, (file) => basename(file))).filter(
      (files) => files!.length > 1,
    );
    expect(shared).toEqual([]);
  });
});
