/**
 * Runs tests on the launch platform's own programs:
 *
 *     npm run test:platform [-- --brief]
 *
 * The programs are those in the folder PLATFORM_PROGRAMS, such as dumps of deployed ones, or those
 * of the platform's crate, which scripts/fetch-platform.ts brings onto this machine. With `--brief`,
 * as in .ci/run: the model, the life of a coin, and the contract; and where the programs cannot be
 * had, nothing runs, and this is no failure.
 */
import { spawnSync } from "node:child_process";
import { FetchError, fetchPlatform } from "./fetch-platform.ts";

const isBrief = process.argv.includes("--brief");

function programs(): string | undefined {
  if (process.env.PLATFORM_PROGRAMS) return process.env.PLATFORM_PROGRAMS;
  try {
    return fetchPlatform();
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    console.error(
      `The tests on the launch platform's own programs did not run: ${error.message}. Install cargo 1.82 or newer, or set PLATFORM_PROGRAMS`,
    );
    return undefined;
  }
}

const folder = programs();
if (folder === undefined) process.exit(isBrief ? 0 : 1);
console.log(`On the programs in ${folder}:`);
const { status } = spawnSync(
  "vitest",
  ["run", "--project", "platform", ...(isBrief ? ["test/platform", "test/contract"] : [])],
  { stdio: "inherit", env: { ...process.env, PLATFORM_PROGRAMS: folder } },
);
process.exit(status ?? 1);
