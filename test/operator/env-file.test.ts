import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { Keypair } from "@solana/web3.js";
import { expect, it, onTestFinished } from "vitest";
import { checkLines, loadEnvFile } from "../../src/commands/env-file.ts";
import { runMain, startProgram } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("a broken line in .env ends the start and the doctor with its number, and without its text", async () => {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, ".env"),
    "PORT=0\n\nNODE_ENV: production\nLOG_LEVEL=info\nSOCIAL_API_TOKEN a-secret\n",
  );
  for (const args of [[], ["doctor"]]) {
    const program = startProgram({}, folder, args);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toMatch(
      /^Tributary cannot start:\n {2}- \.env, line 3: .*\n {2}- \.env, line 5: .*\n$/,
    );
    expect(program.output()).not.toContain("a-secret");
  }
});

it("a key in many lines is one problem, which says to put it in quotes", async () => {
  const folder = temporaryFolder();
  const key = JSON.stringify([...Keypair.generate().secretKey], undefined, 2);
  writeFileSync(join(folder, ".env"), `PORT=0\nFEE_PAYER_KEYPAIR=${key}\nLOG_LEVEL=info\n`);
  const program = startProgram({}, folder);
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toMatch(
    /^Tributary cannot start:\n {2}- \.env, lines 3 to 67: .* Put a value of several lines in quotes\n$/,
  );
});

it("a name in .env that resembles a variable's is a warning, however short", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, ".env"), "PORT=0\nHOSTS=127.0.0.1\nREDIS_PASSWORD=x\n");
  const program = startProgram({ PORTS: "1", ROOT: "/" }, folder);
  await program.address(/Gateway +(http\S+)/);
  expect(
    [...program.output().matchAll(/(\w+) is not a variable/g)].map(([, name]) => name),
  ).toEqual(["HOSTS"]);
});

it("a .env with the fee payer's key that every user can read is a warning", () => {
  const file = join(temporaryFolder(), ".env");
  onTestFinished(() => {
    delete process.env.FEE_PAYER_KEYPAIR;
  });
  const warningsOf = (key: string, mode: number) => {
    writeFileSync(file, `FEE_PAYER_KEYPAIR=${key}\n`);
    chmodSync(file, mode);
    return loadEnvFile(file).warnings;
  };
  const key = JSON.stringify([...Keypair.generate().secretKey]);
  expect(warningsOf(key, 0o644)).toEqual([
    `${file} has the fee payer's key, and every user of this machine can read it: run chmod 600 ${file}`,
  ]);
  expect(warningsOf(key, 0o600)).toEqual([]);
  // The path of a key, not a key.
  expect(warningsOf(file, 0o644)).toEqual([]);
});

it("a folder named .env ends the start with one line", async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, ".env"));
  const program = startProgram({}, folder);
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toBe(
    "Tributary cannot start:\n  - .env cannot be read (EISDIR): expected a file of NAME=value lines\n",
  );
});

it.each([
  [
    "comments, blank lines, spaces and export",
    "# a\n\n  \n A = 1\nexport B=2\r\n  # c\nC=\nD",
    ["D"],
  ],
  ["a value of several lines", "A=\"one\ntwo\n\n# three\"\nB=`x\n: y`\nC='=\n'", []],
  ["a quote that is never closed", 'A="one\ntwo\nB=2', ["two"]],
  ["text after a quoted value", "A='x' # y\nB=\"x\" y", []],
  ["values with = and :", "A=b=c\nB=http://x:1/?y=z", []],
  ["no name, or YAML", "=1\nA: b\nB: c=d\nC", ["=1", "A: b", "B: c=d", "C"]],
  ["a name twice", "A=1\nA=1\nB", ["B"]],
])("only lines that Node does not read are broken: %s", (_name, text, broken) => {
  const lines = text.split("\n");
  expect(checkLines(text).broken.map((number) => lines[number - 1])).toEqual(broken);
  const rest = lines.filter((line) => !broken.includes(line)).join("\n");
  expect(parseEnv(text)).toMatchObject(parseEnv(rest));
});

it("a byte-order mark is no part of a name", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, ".env"), "\uFEFFNODE_ENV=nonsense\n");
  const program = startProgram({}, folder);
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toContain(
    '- NODE_ENV: expected development, test or production, got "nonsense"',
  );
});

it.each([
  [
    "a name that is set again",
    "PORT=0\nPORT=1\n",
    ".env, line 2: PORT is set again, and this value counts",
  ],
  [
    "a # in a value without quotes",
    "A=1\nTOKEN=ab#cd\n",
    ".env, line 2: TOKEN ends at the #: put the value in quotes",
  ],
  [
    "a comment, a quoted #, and a name inside a value",
    `A=1 # x\nB="#c"\nC=#x\nD='\nA=1\n'\n`,
    undefined,
  ],
])("warns about a line that may mean something else: %s", (_name, text, warning) => {
  const file = join(temporaryFolder(), ".env");
  writeFileSync(file, text.replace(/^(\w+)=/gm, "TEST_$1="));
  const expected = warning
    ?.replace(file, "")
    .replace(/: (\w+) /, ": TEST_$1 ")
    .replace(".env", file);
  expect(loadEnvFile(file).warnings).toEqual(expected === undefined ? [] : [expected]);
});

it("such a warning stands among the problems, because it may be their cause", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, ".env"), "NODE_ENV=production\nNODE_ENV=nonsense\n");
  const program = startProgram({}, folder);
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toContain(
    "\n  - .env, line 2: NODE_ENV is set again, and this value counts\n",
  );
});

it("hints about misspelled variables stand in the list of problems, of the start and of the doctor", async () => {
  for (const args of [[], ["doctor"]]) {
    const program = runMain(
      { NODE_ENV: "production", SOLANA_RPC_URLS: "http://127.0.0.1:1" },
      args,
    );
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toMatch(/^ {2}- SOLANA_RPC_URL: missing/m);
    expect(program.output()).toMatch(
      /^ {2}- SOLANA_RPC_URLS is not a variable .* Did you mean SOLANA_RPC_URL\?$/m,
    );
  }
});
