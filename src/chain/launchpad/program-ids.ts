// The launch platform's programs on mainnet. Sources:
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/PUMP_PROGRAM_README.md
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/PUMP_SWAP_README.md
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/FEE_PROGRAM_README.md

export const LAUNCHPAD_PROGRAM_ID = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";

export const LAUNCHPAD_AMM_PROGRAM_ID = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";

/** Owns the sharing configs. */
export const LAUNCHPAD_FEES_PROGRAM_ID = "pfeeUxB6jkeY1Hxd7CsFCAjcbHA9rWtchMGdZ6VojVZ";

/** By the names that metrics and the log show. */
export const LAUNCHPAD_PROGRAMS = {
  LAUNCHPAD: LAUNCHPAD_PROGRAM_ID,
  AMM: LAUNCHPAD_AMM_PROGRAM_ID,
  FEES: LAUNCHPAD_FEES_PROGRAM_ID,
};

export type ProgramName = keyof typeof LAUNCHPAD_PROGRAMS;

/**
 * Programs that explorers show beside any account. Sources: the crate solana-sdk-ids, and
 * https://www.solana-program.com/docs/token
 */
const FOREIGN_PROGRAM_IDS = [
  "11111111111111111111111111111111",
  "BPFLoader2111111111111111111111111111111111",
  "BPFLoaderUpgradeab1e11111111111111111111111",
  "ComputeBudget111111111111111111111111111111",
  "Stake11111111111111111111111111111111111111",
  "Vote111111111111111111111111111111111111111",
  "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
  "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
  "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL",
];

/**
 * Known programs that cannot be the escrow program: they cannot withdraw lamports from escrow
 * addresses.
 */
export const NO_ESCROW_PROGRAM_IDS: ReadonlySet<string> = new Set([
  ...Object.values(LAUNCHPAD_PROGRAMS),
  ...FOREIGN_PROGRAM_IDS,
]);
