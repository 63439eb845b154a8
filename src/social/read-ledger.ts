import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Script } from "../upstream/redis.ts";
import { decayed, drained, isAllowed, RULE_IN_LUA, UNUSED_WEIGHT, WIDE_BLOCK_WEIGHT } from "./read-rule.ts";

/** Numbers of accounts, by budget: those that the network newly charges for, and all that it returns. */
export type Counts = readonly [charged: number, returned: number];

/** Which reads fit, and both budgets as the caller then sees them. */
export interface Admission {
  readonly fits: readonly boolean[];
  readonly used: Counts;
  /** What the caller's reads count. */
  readonly reads: Counts;
}

interface Tally {
  counts: [number, number];
  /** In seconds of `performance.now()` time. */
  at: number;
}

/** The address blocks whose reads a process remembers. Each takes about 300 bytes. */
const MAX_BLOCKS = 20_000;
const BUDGETS = [0, 1] as const;
const DAY_SECONDS = 86_400;

/** Counts reads in the memory of this process. The scripts below do the same in Redis. */
export function createReadLedger() {
  const now = () => performance.now() / 1000;
  const newTally = (): Tally => ({ counts: [0, 0], at: now() });
  const bucket = newTally();
  const blocks = new LRUCache<string, Tally>({ max: MAX_BLOCKS });

  function drain(limits: Counts): Tally["counts"] {
    const seconds = now() - bucket.at;
    for (const i of BUDGETS) bucket.counts[i] = drained(limits[i], bucket.counts[i], seconds);
    bucket.at += seconds;
    return bucket.counts;
  }

  function tallyOf(block: string): Tally {
    const tally = blocks.get(block) ?? newTally();
    const seconds = now() - tally.at;
    for (const i of BUDGETS) tally.counts[i] = decayed(tally.counts[i], seconds);
    tally.at += seconds;
    return tally;
  }

  return {
    used: (limits: Counts): Counts => drain(limits),

    /**
     * Reserves reads for a caller: its block, and the wider block if there is one; none for trusted callers. Each of `areNew` is a read, which
     * counts in both budgets if it is true, otherwise only in the second.
     */
    reserve(limits: Counts, [block, wideBlock]: readonly string[], areNew: readonly boolean[]): Admission {
      const used = drain(limits);
      const isTrusted = block === undefined;
      const own = isTrusted ? newTally() : tallyOf(block);
      const wide = wideBlock === undefined ? newTally() : tallyOf(wideBlock);
      const readsIn = (i: 0 | 1) => Math.max(own.counts[i], wide.counts[i] * WIDE_BLOCK_WEIGHT);
      const fits = areNew.map((isNew) => {
        const counted = isNew ? BUDGETS : ([1] as const);
        if (!counted.every((i) => isAllowed(limits[i], used[i], readsIn(i), isTrusted))) return false;
        for (const i of counted) for (const counts of [used, own.counts, wide.counts]) counts[i]++;
        return true;
      });
      if (fits.includes(true)) {
        if (!isTrusted) blocks.set(block, own);
        if (wideBlock !== undefined) blocks.set(wideBlock, wide);
      }
      return { fits, used: [...used], reads: [readsIn(0), readsIn(1)] };
    },

    /** Returns reads to the budgets. */
    giveBack(names: readonly string[], back: Counts): void {
      const subtract = ({ counts }: Tally, weight: number) => {
        for (const i of BUDGETS) counts[i] = Math.max(0, counts[i] - weight * back[i]);
      };
      subtract(bucket, 1);
      for (const name of names) subtract(blocks.get(name) ?? newTally(), 1 - UNUSED_WEIGHT);
    },
  };
}

/** Kinds of reads in the result of {@link RESERVE}. */
const KNOWN = 1;
export const NEW = 2;

/**
 * KEYS: what is used of the budgets, the accounts of the UTC day, then the caller's block unless it is trusted, and the
 * wider block if there is one. ARGV: the limits of the budgets, then a key per read, which is new unless the network has charged for it
 * today. Returns the day; what is used of each budget, and what the caller's reads count in it, in thousandths; and
 * for each read KNOWN or NEW, negative if it does not fit.
 */
export const RESERVE: Script<[number, number, number, number, number, ...number[]]> = {
  answer: z.tuple([z.int(), z.int(), z.int(), z.int(), z.int()], z.int()),
  text: `${RULE_IN_LUA}
local limits = {tonumber(ARGV[1]), tonumber(ARGV[2])}
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local day = math.floor(now / ${DAY_SECONDS})
if redis.call('HGET', KEYS[1], 'day') ~= tostring(day) then redis.call('UNLINK', KEYS[2]) end

local function load(key, next)
  local fields = redis.call('HMGET', key, 'charged', 'returned', 'at')
  local seconds = math.max(0, now - (fields[3] or now))
  return {next(1, tonumber(fields[1] or 0), seconds), next(2, tonumber(fields[2] or 0), seconds)}
end
local function decay(i, count, seconds) return decayed(count, seconds) end
local used = load(KEYS[1], function(i, count, seconds) return drained(limits[i], count, seconds) end)
local own = KEYS[3] and load(KEYS[3], decay) or {0, 0}
local wide = KEYS[4] and load(KEYS[4], decay) or {0, 0}
local function reads(i) return math.max(own[i], wide[i] * ${WIDE_BLOCK_WEIGHT}) end
local function allows(i) return isAllowed(limits[i], used[i], reads(i), not KEYS[3]) end
local function add(i) used[i], own[i], wide[i] = used[i] + 1, own[i] + 1, wide[i] + 1 end

local kinds, fitting = {}, 0
for i = 3, #ARGV do
  local isNew = redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0
  local kind = isNew and ${NEW} or ${KNOWN}
  if allows(2) and (not isNew or allows(1)) then
    if isNew then add(1) end
    add(2)
    fitting = fitting + 1
    table.insert(kinds, kind)
  else table.insert(kinds, -kind) end
end

local function save(key, counts, ttl)
  redis.call('HSET', key, 'charged', counts[1], 'returned', counts[2], 'at', now)
  redis.call('EXPIRE', key, ttl)
end
redis.call('HSET', KEYS[1], 'day', day)
save(KEYS[1], used, ${DAY_SECONDS})
if fitting > 0 then
  for i, counts in ipairs({own, wide}) do
    -- Until its reads count less than one.
    if KEYS[2 + i] then save(KEYS[2 + i], counts, math.ceil(3600 * (1 + math.log(counts[2])))) end
  end
end
local function thousandths(count) return math.ceil(1000 * count) end
return {day, thousandths(used[1]), thousandths(used[2]), thousandths(reads(1)), thousandths(reads(2)), unpack(kinds)}
`,
};

/**
 * KEYS: those of a reservation. ARGV: its day, how many ids and handles are remembered at most, what to give back to
 * each budget, then for each account returned: 1 if it was reserved as new, its id, and a key for its handle. Remembers
 * the accounts, and counts each once.
 */
export const SETTLE: Script<unknown> = {
  answer: z.unknown(),
  text: `
local back = {tonumber(ARGV[3]), tonumber(ARGV[4])}
local isSameDay = redis.call('HGET', KEYS[1], 'day') == ARGV[1]
local isRemembering = isSameDay and redis.call('SCARD', KEYS[2]) < tonumber(ARGV[2])
for i = 5, #ARGV, 3 do
  local isCharged = isSameDay and redis.call('SISMEMBER', KEYS[2], ARGV[i + 1]) == 1
  if isRemembering then redis.call('SADD', KEYS[2], ARGV[i + 1], ARGV[i + 2]) end
  back[1] = back[1] + ARGV[i] - (isCharged and 0 or 1)
end
redis.call('EXPIRE', KEYS[2], ${DAY_SECONDS})
for i, key in ipairs(KEYS) do
  for j, field in ipairs({'charged', 'returned'}) do
    local count = i ~= 2 and redis.call('HGET', key, field)
    if count then redis.call('HSET', key, field, math.max(0, count - back[j] * (i == 1 and 1 or ${1 - UNUSED_WEIGHT}))) end
  end
end
return true
`,
};
