/**
 * Converts a block's time, in seconds since 1970, capped at now: the node's clock may be ahead.
 * Returns undefined if the time is unknown.
 */
export function toDate(blockTime: number | undefined): Date | undefined {
  return blockTime === undefined ? undefined : new Date(Math.min(blockTime * 1000, Date.now()));
}
