import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Keypair } from "@solana/web3.js";
import { afterEach, expect, it, vi } from "vitest";
import { loadEnvFile } from "../../src/commands/env-file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

function load(text: string, mode = 0o600) {
  const file = join(temporaryFolder(), ".env");
  writeFileSync(file, text);
  chmodSync(file, mode);
  return { file, warnings: loadEnvFile(file) };
}

it("a variable of .env counts if the process has none, or an empty one; a byte-order mark is no part of its name", () => {
  vi.stubEnv("LOG_LEVEL", "");
  vi.stubEnv("PORT", "1");
  vi.stubEnv("BASE_PATH", undefined);
  load("\uFEFFLOG_LEVEL=debug\nPORT=2\nBASE_PATH=/base\n");
  const { LOG_LEVEL, PORT, BASE_PATH } = process.env;
  expect([LOG_LEVEL, PORT, BASE_PATH]).toEqual(["debug", "1", "/base"]);
});

it("a .env with the fee payer's key that every user can read is a warning", () => {
  vi.stubEnv("FEE_PAYER_KEYPAIR", "");
  const key = JSON.stringify([...Keypair.generate().secretKey]);
  const { file, warnings } = load(`FEE_PAYER_KEYPAIR=${key}\n`, 0o644);
  expect(warnings).toEqual([
    `${file} has the fee payer's key, and every user of this machine can read it: run chmod 600 ${file}`,
  ]);
  expect(load(`FEE_PAYER_KEYPAIR=${key}\n`).warnings).toEqual([]);
  // The path of a key, not a key.
  expect(load(`FEE_PAYER_KEYPAIR=${file}\n`, 0o644).warnings).toEqual([]);
});

it("a folder named .env ends the start, and a missing file does not", () => {
  const folder = temporaryFolder();
  expect(() => loadEnvFile(folder)).toThrow("EISDIR: illegal operation on a directory, read");
  expect(loadEnvFile(join(folder, ".env"))).toEqual([]);
});
