/** The account in which the cluster keeps its time. */
export const CLOCK_SYSVAR = "SysvarC1ock11111111111111111111111111111111";

/** Where the time stands: after the slot, the epoch's start, the epoch, and the epoch of the leader schedule. */
const TIME_OFFSET = 32;
/** All of the account's data. Source: https://docs.solanalabs.com/runtime/sysvars#clock */
export const CLOCK_BYTES = 40;

/** The time of the state that the sysvar was read from, in ms since 1970; undefined if its data is too short. */
export function decodeClock(data: Buffer | undefined): number | undefined {
  if (!data || data.length < CLOCK_BYTES) return undefined;
  return Number(data.readBigInt64LE(TIME_OFFSET)) * 1_000;
}
