/**
 * Prints the options with which `solana-test-validator` clones the programs and accounts that a collect uses:
 *
 *     node scripts/print-fork-accounts.ts <social id> <mint> ...
 *
 * For each mint it also prints what the coin uses once its fees are shared, except the shareholders: only the chain knows
 * them. Add `--maybe-clone` for each address in the coin's sharing config, since a distribution pays them all.
 *
 * Needs ESCROW_PROGRAM_ID, and reads the other variables of addresses.
 */
import { PublicKey } from "@solana/web3.js";
import { createAddresses } from "../src/chain/addresses.ts";
import { deriveAddress } from "../src/chain/derive-address.ts";
import { createCoinAddresses } from "../src/chain/launchpad/coin-addresses.ts";
import type { Creator } from "../src/chain/launchpad/vaults.ts";
import { Variables } from "../src/variables.ts";

const { shape } = Variables;
const read = (name: "ESCROW_PROGRAM_ID" | "ESCROW_SEED" | `LAUNCHPAD_${string}PROGRAM_ID`) =>
  shape[name as keyof typeof shape].parse(process.env[name]) as string;
const programs = {
  escrowProgramId: read("ESCROW_PROGRAM_ID"),
  escrowSeed: read("ESCROW_SEED"),
  launchpadProgramId: read("LAUNCHPAD_PROGRAM_ID"),
  launchpadAmmProgramId: read("LAUNCHPAD_AMM_PROGRAM_ID"),
  launchpadFeesProgramId: read("LAUNCHPAD_FEES_PROGRAM_ID"),
};
const configOf = (program: string, seed: string) =>
  deriveAddress([Buffer.from(seed)], new PublicKey(program)).toBase58();

const allOf = ({ address, creatorVault, ammVaultAuthority, ammVault }: Creator) => [
  address,
  creatorVault,
  ammVaultAuthority,
  ammVault,
];

const [socialId = "", ...mints] = process.argv.slice(2);
const coinAddressesOf = createCoinAddresses(programs);
const accounts = [
  configOf(programs.launchpadProgramId, "global"),
  configOf(programs.launchpadAmmProgramId, "global_config"),
  ...allOf(createAddresses(programs)(socialId)),
  ...mints.flatMap((mint) => {
    const { curve, curveTokens, pool, poolTokens, sharingConfig } = coinAddressesOf(mint);
    return [mint, curve, curveTokens, pool, poolTokens, ...allOf(sharingConfig)];
  }),
];
const { launchpadProgramId, launchpadAmmProgramId, launchpadFeesProgramId, escrowProgramId } = programs;
for (const program of [launchpadProgramId, launchpadAmmProgramId, launchpadFeesProgramId, escrowProgramId])
  console.log(`--clone-upgradeable-program ${program}`);
for (const account of accounts) console.log(`--maybe-clone ${account}`);
