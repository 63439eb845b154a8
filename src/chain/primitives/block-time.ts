/**
 * Converts a block's time, in seconds since 1970, capped at now: the node's clock may be ahead.
 * Returns undefined if the time is unknown or no date.
 */
export function toDate(blockTime: number | undefined): Date | undefined {
  const date = new Date((blockTime ?? NaN) * 1000);
  if (Number.isNaN(date.getTime())) return undefined;
  return date.getTime() < Date.now() ? date : new Date();
}
