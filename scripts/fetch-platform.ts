/**
 * Brings the launch platform's own programs onto this machine, outside the repository, and prints
 * their folder:
 *
 *     node scripts/fetch-platform.ts [version] [folder]
 *
 * The platform's crate ships them. Cargo 1.82 or newer downloads that crate alone, into its cache,
 * and checks it against the registry; this script checks it, and each program, against the sums of
 * tested-builds.ts.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { PLATFORM_CRATE as CRATE, TESTED_BUILDS as BUILDS } from "./tested-builds.ts";
import { PROGRAMS } from "../src/sandbox/platform.ts";

export const TESTED_VERSION = "0.5.0";
const TAR_BLOCK = 512;

/** Says what keeps this machine from having the programs. */
export class FetchError extends Error {}

/** Where {@link fetchPlatform} puts the programs: a folder of this user, for each version. */
function defaultFolder(version: string): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(cache, "tributary", `platform-${version}`);
}

/** Puts the programs into `folder`, unless they are there, and returns it. Throws FetchError. */
export function fetchPlatform(version = TESTED_VERSION, folder = defaultFolder(version)): string {
  const builds = BUILDS[version];
  if (!builds)
    throw new FetchError(
      `no sums are known of ${CRATE} ${version}; known are ${Object.keys(BUILDS).join(", ")}`,
    );
  const isThere = PROGRAMS.every(
    ({ name, file }) => sumOf(readIfThere(join(folder, file))) === builds.programs[name].sha256,
  );
  if (isThere) return folder;
  const archive = findCrate(version, builds.crate) ?? downloadCrate(version, builds.crate);
  const files = readTar(gunzipSync(archive));
  mkdirSync(folder, { recursive: true });
  for (const { name, file } of PROGRAMS) {
    const program = files.get(`${CRATE}-${version}/artifacts/${file}`);
    const { sha256 } = builds.programs[name];
    if (sumOf(program) !== sha256)
      throw new FetchError(
        `${file} of ${CRATE} ${version}: expected the SHA-256 ${sha256}, got ${sumOf(program)}`,
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
