import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { addressChecks, expectToCheck } from "../support/address-checks.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { it, world } from "../support/fixtures.ts";

/** The others are tested by `derivation.long.test.ts`. */
const checks = addressChecks().filter(({ language }) => language === "js");

it.each(checks)(
  "docs/check-an-address.md's code, with this project's packages accepts a lookup, and rejects a wrong address and id: $install",
  async (check) => {
    const folder = temporaryFolder();
    const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));
    symlinkSync(modules, join(folder, "node_modules"));
    await expectToCheck(check, { world, folder, command: process.execPath });
  },
);
