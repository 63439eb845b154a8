import { execFile } from "node:child_process";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { addressChecks, expectToCheck, type AddressCheck } from "../support/address-checks.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { it, world } from "../support/fixtures.ts";

const checks = addressChecks();

/** Where a reader starts, what shows that packages can be installed there, and how code runs. */
const PLACES: Record<AddressCheck["language"], { start: string; probe: string; run: string }> = {
  js: { start: "npm init -y", probe: "npm view npm version", run: process.execPath },
  py: {
    start: "python3 -m venv .",
    probe: "pip download -q --no-deps -d downloads pip",
    run: "bin/python",
  },
};

async function shell(folder: string, command: string): Promise<void> {
  const nodeFolder = dirname(process.execPath);
  const path = [resolve(folder, "bin"), nodeFolder, process.env.PATH].join(":");
  const options = { cwd: folder, env: { ...process.env, PATH: path } };
  await promisify(execFile)("bash", ["-c", command], options);
}

it.for(checks)(
  "docs/check-an-address.md's code, with the packages that a reader installs accepts a lookup, and rejects a wrong address and id: $install",
  { timeout: 1_800_000 },
  async (check, { skip }) => {
    const { start, probe, run } = PLACES[check.language];
    const folder = temporaryFolder();
    try {
      await shell(folder, `${start} && ${probe}`);
    } catch (error) {
      // In CI, what cannot be installed is a failure.
      if (process.env.CI) throw error;
      skip(`nothing can be installed: ${String(error)}`);
    }
    await shell(folder, check.install);
    await expectToCheck(check, { world, folder, command: resolve(folder, run) });
  },
);
