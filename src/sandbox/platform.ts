import { existsSync } from "node:fs";
import { join } from "node:path";
import { deriveAddress } from "../chain/primitives/derive-address.ts";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../chain/launchpad/program-ids.ts";
import type { Chain } from "./chain/chain.ts";

/** The launch platform's programs, and the files that they have in its crate. */
export const PROGRAMS = [
  { name: "LAUNCHPAD", id: LAUNCHPAD_PROGRAM_ID, file: "pump.so" },
  { name: "AMM", id: LAUNCHPAD_AMM_PROGRAM_ID, file: "pump_amm.so" },
  { name: "FEES", id: LAUNCHPAD_FEES_PROGRAM_ID, file: "pump_fees.so" },
] as const;

export const PROGRAM_FILES = PROGRAMS.map(({ file }) => file);

/** The launch platform's own programs in a folder, in place of the sandbox's stand-ins. */
export const programsIn = (folder: string) =>
  PROGRAMS.map(({ id, file }) => ({ id, file: join(folder, file) }));

/** The names of {@link PROGRAM_FILES} that a folder lacks. */
export const missingProgramsOf = (folder: string): string[] =>
  PROGRAM_FILES.filter((file) => !existsSync(join(folder, file)));

/**
 * The configuration accounts that the programs' sweeps read. Sweeps, transfers, collects and
 * distributions need only their discriminator and size, so all fields are 0. Sizes: mainnet's, in
 * November 2026.
 */
const CONFIGS = [
  {
    program: LAUNCHPAD_PROGRAM_ID,
    seed: "global",
    discriminator: Buffer.from("a7e8e8b1c86c727f", "hex"),
    bytes: 1_088,
  },
  {
    program: LAUNCHPAD_AMM_PROGRAM_ID,
    seed: "global_config",
    discriminator: Buffer.from("95089ccaa0fcb0d9", "hex"),
    bytes: 949,
  },
];

/** Creates the configuration accounts of the launch platform's programs. */
export function createPlatformConfigs(chain: Chain): void {
  for (const { program, seed, discriminator, bytes } of CONFIGS) {
    const data = Buffer.alloc(bytes);
    discriminator.copy(data);
    const lamports = chain.rentExemptMinimum(bytes);
    chain.setAccount(deriveAddress([seed], program), { lamports, owner: program, data });
  }
}
