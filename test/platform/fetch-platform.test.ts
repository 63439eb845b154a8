import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SCRIPT = new URL("../../scripts/fetch-platform.ts", import.meta.url).pathname;

/** Fetches into an empty folder, with this home of cargo and no cargo. */
function fetch(version: string, cargoHome = temporaryFolder()) {
  const folder = temporaryFolder();
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, version, folder], {
    encoding: "utf8",
    env: { CARGO_HOME: cargoHome, PATH: "/nonexistent" },
  });
  return { status, stderr, files: readdirSync(folder) };
}

it("fetches no version of the platform's crate whose sum is unknown", () => {
  expect(fetch("9.9.9")).toEqual({
    status: 1,
    stderr: expect.stringContaining("no sums are known of pump-rust-client 9.9.9"),
    files: [],
  });
});

it("refuses an archive with another sum", () => {
  const home = temporaryFolder();
  mkdirSync(join(home, "registry/cache/registry"), { recursive: true });
  writeFileSync(join(home, "registry/cache/registry/pump-rust-client-0.5.0.crate"), "other");
  expect(fetch("0.5.0", home)).toEqual({
    status: 1,
    stderr: expect.stringMatching(/pump-rust-client-0\.5\.0\.crate: expected the SHA-256 9569/),
    files: [],
  });
});

it("says that it needs cargo, and of which version", () => {
  expect(fetch("0.5.0")).toEqual({
    status: 1,
    stderr: expect.stringContaining("cargo 1.82 or newer is needed"),
    files: [],
  });
});
