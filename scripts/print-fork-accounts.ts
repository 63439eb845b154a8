/**
 * Prints the options with which `solana-test-validator` clones the programs and accounts that a
 * collect uses:
 *
 *     node scripts/print-fork-accounts.ts <social id> <mint> ...
 *
 * For each mint it also prints what the coin uses once its fees are shared, except the
 * shareholders: only the chain knows them. Add `--maybe-clone` for each address in the coin's
 * sharing config, since a distribution pays them all.
 *
 * Needs ESCROW_PROGRAM_ID, and ESCROW_SEED if it is set.
 */
import { createAddresses } from "../src/chain/launchpad/account-addresses.ts";
import { deriveAddress } from "../src/chain/primitives/derive-address.ts";
import { coinAddressesOf } from "../src/chain/launchpad/coin-addresses.ts";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../src/chain/launchpad/program-ids.ts";
import type { Creator } from "../src/chain/launchpad/vaults.ts";
import { Settings } from "../src/variables.ts";

const { ESCROW_PROGRAM_ID, ESCROW_SEED } = Settings.shape;
const escrow = {
  escrowProgramId: ESCROW_PROGRAM_ID.parse(process.env.ESCROW_PROGRAM_ID),
  escrowSeed: ESCROW_SEED.parse(process.env.ESCROW_SEED),
};
const configOf = (program: string, seed: string) => deriveAddress([seed], program);

const allOf = ({ address, creatorVault, ammVaultAuthority, ammVault }: Creator) => [
  address,
  creatorVault,
  ammVaultAuthority,
  ammVault,
];

const [socialId = "", ...mints] = process.argv.slice(2);
const accounts = [
  configOf(LAUNCHPAD_PROGRAM_ID, "global"),
  configOf(LAUNCHPAD_AMM_PROGRAM_ID, "global_config"),
  ...allOf(createAddresses(escrow)(socialId)),
  ...mints.flatMap((mint) => {
    const { curve, curveTokens, pool, poolTokens, sharingConfig } = coinAddressesOf(mint);
    return [mint, curve, curveTokens, pool, poolTokens, ...allOf(sharingConfig)];
  }),
];
const programs = [
  LAUNCHPAD_PROGRAM_ID,
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_FEES_PROGRAM_ID,
  escrow.escrowProgramId,
];
for (const program of programs) console.log(`--clone-upgradeable-program ${program}`);
for (const account of accounts) console.log(`--maybe-clone ${account}`);
