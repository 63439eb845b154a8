// The launch platform's programs on mainnet. Sources:
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/PUMP_PROGRAM_README.md
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/PUMP_SWAP_README.md
// https://github.com/pump-fun/pump-public-docs/blob/main/docs/FEE_PROGRAM_README.md

/** Address of the launch platform's program on mainnet, base58. */
export const LAUNCHPAD_PROGRAM_ID = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";

/** Address of the launch platform's AMM program on mainnet, base58. */
export const LAUNCHPAD_AMM_PROGRAM_ID = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";

/** Address of the launch platform's program that owns sharing configs on mainnet, base58. */
export const LAUNCHPAD_FEES_PROGRAM_ID = "pfeeUxB6jkeY1Hxd7CsFCAjcbHA9rWtchMGdZ6VojVZ";
