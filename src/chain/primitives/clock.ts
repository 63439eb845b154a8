export const CLOCK_SYSVAR = "SysvarC1ock11111111111111111111111111111111";

/**
 * The offset of the timestamp: after the slot, the epoch's start, the epoch, and the leader
 * schedule's epoch.
 */
const TIME_OFFSET = 32;
/** The size of the account's data. Source: https://docs.solanalabs.com/runtime/sysvars#clock */
export const CLOCK_BYTES = 40;

/** Decodes the chain's time, in ms since 1970; undefined if the data is too short. */
export function decodeClock(data: Buffer | undefined): number | undefined {
  if (!data || data.length < CLOCK_BYTES) return undefined;
  return Number(data.readBigInt64LE(TIME_OFFSET)) * 1_000;
}
