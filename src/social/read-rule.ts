/**
 * The rule by which callers share a budget of `limit` reads an hour, in TypeScript and in Lua.
 *
 * A bucket holds five minutes' worth of reads and refills evenly; it starts full, and what it holds plus what an hour
 * refills is `limit`. `used` is what it lacks. `reads` is the number of a caller's reads, of which each counts less
 * over time: 37% after an hour. A caller may read while the bucket is fuller than `(min(1, reads / 10) +
 * reads / (0.2 * limit)) / 2`. So the lower half is for callers with fewer than ten reads, a caller that has read little
 * is served before one that has read much, and no burst takes the hour. `reads` is never more than a fifth of the limit, of
 * which at most as much decays in an hour: a caller gets at most two fifths in its first hour, and then a fifth an hour.
 *
 * Reads of trusted callers have no share: they only leave the lower half to others.
 */

const HOUR_SECONDS = 3600;
/** The bucket refills twelve of these parts in an hour, and holds one: five minutes' worth. */
const PARTS = 13;
/** From this many reads on, a caller has no part in the lower half. */
const FEW_READS = 10;
/** A caller whose reads count this part of the limit gets nothing. */
const MOST_READS_PART = 0.2;
/** Owners of an IPv6 /32 may have many /48s: its callers together count as one with an eighth of their reads. */
export const WIDE_BLOCK_WEIGHT = 1 / 8;

/**
 * A reservation that comes to nothing counts a tenth of a read to its caller, and nothing in the budget: a caller must
 * not hold the budget again and again with handles that do not exist.
 */
export const UNUSED_WEIGHT = 1 / 10;

/** The reads that the bucket holds when it is full: at least one, however small the limit. */
export const capacityOf = (limit: number): number => Math.max(1, limit / PARTS);

/** What the bucket lacks after some seconds. With a limit of one, half an account per hour refills it. */
export const drained = (limit: number, used: number, seconds: number): number =>
  Math.max(0, used - (seconds * Math.max(limit - capacityOf(limit), limit / 2)) / HOUR_SECONDS);

/** What a caller's reads count after some seconds. */
export const decayed = (reads: number, seconds: number): number => reads * Math.exp(-seconds / HOUR_SECONDS);

/** Whether a caller may read one more account. */
export function isAllowed(limit: number, used: number, reads: number, isTrusted = false): boolean {
  const left = capacityOf(limit) - used;
  const needed = isTrusted ? 1 / 2 : (Math.min(1, reads / FEW_READS) + reads / (MOST_READS_PART * limit)) / 2;
  return left >= 1 && left / capacityOf(limit) > needed;
}

/** The same functions in Lua. */
export const RULE_IN_LUA = `
local function capacityOf(limit) return math.max(1, limit / ${PARTS}) end
local function drained(limit, used, seconds)
  return math.max(0, used - seconds * math.max(limit - capacityOf(limit), limit / 2) / ${HOUR_SECONDS})
end
local function decayed(reads, seconds) return reads * math.exp(-seconds / ${HOUR_SECONDS}) end
local function isAllowed(limit, used, reads, isTrusted)
  local left = capacityOf(limit) - used
  local needed = isTrusted and 1 / 2 or (math.min(1, reads / ${FEW_READS}) + reads / (${MOST_READS_PART} * limit)) / 2
  return left >= 1 and left / capacityOf(limit) > needed
end
`;

/** The longest time that {@link secondsUntilAllowed} looks ahead: by then a full hour's reads hardly count. */
const LONGEST_WAIT_SECONDS = 24 * HOUR_SECONDS;

/** Whole seconds until the caller may read one more account, if nobody reads any until then. */
export function secondsUntilAllowed(limit: number, used: number, reads: number, isTrusted = false): number {
  let [low, high] = [0, LONGEST_WAIT_SECONDS];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isAllowed(limit, drained(limit, used, middle), decayed(reads, middle), isTrusted)) high = middle;
    else low = middle;
  }
  return high;
}
