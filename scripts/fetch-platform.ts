/**
 * Brings the launch platform's own programs onto this machine, outside the repository, and prints
 * their folder:
 *
 *     node scripts/fetch-platform.ts [version] [folder]
 *
 * The platform's crate ships them. Cargo 1.82 or newer downloads that crate alone, into its cache,
 * and checks it against the registry; this script checks it, and each program, against the sums
 * below.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { PROGRAM_FILES } from "../src/sandbox/platform.ts";

const CRATE = "pump-rust-client";
export const TESTED_VERSION = "0.5.0";
const TAR_BLOCK = 512;

/** SHA-256 of the crate's archive and of its programs. */
const SUMS: Readonly<
  Record<string, { crate: string; programs: Readonly<Record<string, string>> }>
> = {
  "0.3.0": {
    crate: "711db8d7e9af7e2d0d66e12b306d21dad5e84a00235a9a3be81aa9d4eb1e6486",
    programs: {
      "pump.so": "defc661c59c032c2f04ac54d3859ca5e2f81f1776c75746ded4cff461dca542e",
      "pump_amm.so": "e90f9578de8a4d55aeb58e33cde5aef300094eef4a4971533f792f465124fc32",
      "pump_fees.so": "2307575fbb3fb170d319aa25e33ed49f25d3218e5dfb7589863958c0d4eb5dfe",
    },
  },
  "0.4.1": {
    crate: "7179a636f9c52b2447a39b13216b9832141a8557c958f27e66b78582b9efbe19",
    programs: {
      "pump.so": "692b19d0242b906d73764c41d30f7b61816c1c6f30a0164e09a20adf9578c092",
      "pump_amm.so": "3c83d286afda2ac79b9c7284b6cbc931757342a48bd0be22db94e37b409ebee4",
      "pump_fees.so": "2307575fbb3fb170d319aa25e33ed49f25d3218e5dfb7589863958c0d4eb5dfe",
    },
  },
  "0.5.0": {
    crate: "95693f12f465bbd223056a750794aa9fb88b19268ef288fe19ca0be0b903a8a7",
    programs: {
      "pump.so": "aa7b9ec411e08bdcf6941a986075ebceaac9087d1f859f263f766349fdaaabc3",
      "pump_amm.so": "0f7963aa07aadab8a2846382d92ccde87669a7efd81223c9639933c07eccd054",
      "pump_fees.so": "5b6ceda57863f0dcc3e0e3623052f8342c2c81883379699e71d7ed5383cb3dcf",
    },
  },
};

/** Says what keeps this machine from having the programs. */
export class FetchError extends Error {}

/** Where {@link fetchPlatform} puts the programs: a folder of this user, for each version. */
function defaultFolder(version: string): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(cache, "tributary", `platform-${version}`);
}

/** Puts the programs into `folder`, unless they are there, and returns it. Throws FetchError. */
export function fetchPlatform(version = TESTED_VERSION, folder = defaultFolder(version)): string {
  const sums = SUMS[version];
  if (!sums)
    throw new FetchError(
      `no sums are known of ${CRATE} ${version}; known are ${Object.keys(SUMS).join(", ")}`,
    );
  const isThere = PROGRAM_FILES.every(
    (file) => sumOf(readIfThere(join(folder, file))) === sums.programs[file],
  );
  if (isThere) return folder;
  const archive = findCrate(version, sums.crate) ?? downloadCrate(version, sums.crate);
  const files = readTar(gunzipSync(archive));
  mkdirSync(folder, { recursive: true });
  for (const file of PROGRAM_FILES) {
    const program = files.get(`${CRATE}-${version}/artifacts/${file}`);
    if (sumOf(program) !== sums.programs[file])
      throw new FetchError(
        `${file} of ${CRATE} ${version}: expected the SHA-256 ${sums.programs[file]}, got ${sumOf(program)}`,
      );
    writeFileSync(join(folder, file), program!);
  }
  return folder;
}

/** The crate's archive from cargo's cache. */
function findCrate(version: string, sum: string): Buffer | undefined {
  const home = process.env.CARGO_HOME || join(homedir(), ".cargo");
  const [path] = globSync(join(home, "registry/cache/*", `${CRATE}-${version}.crate`));
  if (path === undefined) return undefined;
  const archive = readFileSync(path);
  if (sumOf(archive) !== sum)
    throw new FetchError(`${path}: expected the SHA-256 ${sum}, got ${sumOf(archive)}`);
  return archive;
}

function downloadCrate(version: string, sum: string): Buffer {
  // An empty folder: a project's folder may choose another toolchain.
  const folder = mkdtempSync(join(tmpdir(), "tributary-fetch-"));
  const cargo = (...args: string[]) =>
    spawnSync("cargo", args, { cwd: folder, encoding: "utf8", timeout: 120_000 });
  try {
    const { error, stdout, stderr } = cargo("--version");
    if (error) throw new FetchError(`cargo 1.82 or newer is needed: ${error.message}`);
    const [, major, minor] = /^cargo (\d+)\.(\d+)/.exec(stdout) ?? [];
    if (!(Number(major) > 1 || Number(minor) >= 82))
      throw new FetchError(`cargo 1.82 or newer is needed, got ${stdout.trim() || stderr.trim()}`);
    const info = cargo("info", `${CRATE}@${version}`);
    const archive = findCrate(version, sum);
    if (archive) return archive;
    throw new FetchError(
      `cargo info ${CRATE}@${version} brought no archive: ${info.stderr.trim() || info.error?.message}`,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The files of a tar archive, by their names. Names of over 100 bytes are cut. */
function readTar(tar: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const textAt = (at: number, length: number) =>
    tar.toString("latin1", at, at + length).replace(/\0.*$/s, "");
  for (let at = 0; at < tar.length && tar[at] !== 0;) {
    const bytes = Number.parseInt(textAt(at + 124, 12), 8);
    files.set(textAt(at, 100), tar.subarray(at + TAR_BLOCK, at + TAR_BLOCK + bytes));
    at += TAR_BLOCK * (1 + Math.ceil(bytes / TAR_BLOCK));
  }
  return files;
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

function sumOf(data: Buffer | undefined): string | undefined {
  return data && createHash("sha256").update(data).digest("hex");
}

if (import.meta.main) {
  const [version, folder] = process.argv.slice(2);
  try {
    console.log(fetchPlatform(version, folder));
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    console.error(`Cannot fetch the launch platform's programs: ${error.message}`);
    process.exit(1);
  }
}
