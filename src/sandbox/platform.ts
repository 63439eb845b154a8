import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { deriveAddress } from "../chain/primitives/derive-address.ts";
import { LAUNCHPAD_PROGRAMS } from "../chain/launchpad/program-ids.ts";
import { setProgramAccount } from "./chain/accounts.ts";
import type { Chain } from "./chain/chain.ts";

/**
 * The launch platform's programs, the files that they have in its crate, and the sandbox's
 * stand-ins.
 */
export const PROGRAMS = [
  { name: "LAUNCHPAD", file: "pump.so", standIn: "launchpad.so" },
  { name: "AMM", file: "pump_amm.so", standIn: "amm.so" },
  // The gateway only checks that it exists, and reads accounts that it owns: any program will do.
  { name: "FEES", file: "pump_fees.so", standIn: "launchpad.so" },
] as const;

export const standInFile = (name: string) =>
  fileURLToPath(new URL(`programs/${name}`, import.meta.url));

/** The launch platform's own programs in a folder, or the sandbox's stand-ins. */
export const programsIn = (folder: string | undefined) =>
  PROGRAMS.map(({ name, file, standIn }) => ({
    id: LAUNCHPAD_PROGRAMS[name],
    file: folder === undefined ? standInFile(standIn) : join(folder, file),
  }));

/**
 * The configuration accounts that the programs' sweeps read: program, seed, discriminator and size.
 * Sweeps, transfers, collects and distributions need no more, so all fields are 0. Sizes: mainnet's,
 * in November 2026.
 */
const CONFIGS = [
  [LAUNCHPAD_PROGRAMS.LAUNCHPAD, "global", "a7e8e8b1c86c727f", 1_088],
  [LAUNCHPAD_PROGRAMS.AMM, "global_config", "95089ccaa0fcb0d9", 949],
] as const;

/** Creates the configuration accounts of the launch platform's programs. */
export function createPlatformConfigs(chain: Chain): void {
  for (const [owner, seed, discriminator, bytes] of CONFIGS)
    setProgramAccount(chain, { address: deriveAddress([seed], owner), owner, bytes }, [
      [0, Buffer.from(discriminator, "hex")],
    ]);
}
