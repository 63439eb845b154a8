import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Keypair } from "@solana/web3.js";
import { expect, it, onTestFinished } from "vitest";
import { loadEnvFile } from "../../src/commands/env-file.ts";
import { startProgram } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("an empty variable is an absent one beside .env", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, ".env"), "LOG_LEVEL=nonsense\n");
  const program = startProgram({ LOG_LEVEL: "" }, folder);
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toContain('got "nonsense"');
});

it("a .env with the fee payer's key that every user can read is a warning", () => {
  const file = join(temporaryFolder(), ".env");
  onTestFinished(() => {
    delete process.env.FEE_PAYER_KEYPAIR;
  });
  const warningsOf = (key: string, mode: number) => {
    writeFileSync(file, `FEE_PAYER_KEYPAIR=${key}\n`);
    chmodSync(file, mode);
    return loadEnvFile(file);
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

it("a byte-order mark is no part of a name", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, ".env"), "\uFEFFNODE_ENV=nonsense\n");
  const program = startProgram({}, folder);
  expect(await program.exitCode()).toBe(1);
  expect(program.output()).toContain(
    '- NODE_ENV: expected development, test or production, got "nonsense"',
  );
});
