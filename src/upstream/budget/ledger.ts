/**
 * The rule of the hourly budgets, in memory and in Redis: an amount is reserved in all its counters or in none. It
 * counts in the minute of its reservation, and a minute counts until all of it is an hour old.
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { toRetryAfterSeconds } from "../../contract/contract-error.ts";
import type { Redis, Script } from "../redis.ts";

/** Whose limit is reached: the caller's, which all callers of its address block have together, or the service's. */
export type BudgetScope = "CALLER" | "SERVICE";

/** Why an amount does not fit. */
export interface Shortage {
  readonly scope: BudgetScope;
  /** Whole seconds until it would fit; absent if it never does. */
  readonly retryAfterSeconds?: number;
}

/** An amount that is reserved, unless there is a shortage. */
export type Reservation =
  | { readonly shortage: Shortage }
  | {
      readonly shortage?: undefined;
      /** Returns `unused` of the amount. May be called again for further parts; a negative part charges more. */
      release(unused: number): void;
    };

/** A sum of reserved amounts, with its limit. */
export interface Counter {
  readonly name: string;
  readonly limit: number;
  readonly scope: BudgetScope;
}

/** A reservation, with what is then reserved in the last of its counters. */
type Entry = Reservation & { readonly sum: number };

const MINUTE_SECONDS = 60;
const MINUTES_COUNTED = 61;
const WINDOW_SECONDS = MINUTES_COUNTED * MINUTE_SECONDS;
/** The counters that a process remembers. Each takes about 500 bytes. */
const MAX_COUNTERS = 20_000;

/** Counts in the memory of this process. */
export function createLedger() {
  const counts = new LRUCache<string, Map<number, number>>({ max: MAX_COUNTERS });

  /** The amounts of a counter by minute, without those that no longer count. */
  function amountsOf(name: string, minute: number): Map<number, number> {
    const amounts = counts.get(name) ?? new Map<number, number>();
    for (const each of amounts.keys()) if (each <= minute - MINUTES_COUNTED) amounts.delete(each);
    return amounts;
  }

  function add(name: string, minute: number, amount: number): void {
    const amounts = amountsOf(name, minute);
    const sum = (amounts.get(minute) ?? 0) + amount;
    if (sum > 0) amounts.set(minute, sum);
    else amounts.delete(minute);
    if (amounts.size > 0) counts.set(name, amounts);
    else counts.delete(name);
  }

  return {
    reserve(counters: readonly Counter[], amount: number): Entry {
      const seconds = performance.now() / 1000;
      const minute = Math.floor(seconds / MINUTE_SECONDS);
      let [sum, mostLeft, shortage]: [number, number, Shortage | undefined] = [0, amount, undefined];
      for (const counter of counters) {
        const amounts = [...amountsOf(counter.name, minute)];
        sum = amounts.reduce((total, [, each]) => total + each, 0);
        if (counter.limit - sum >= mostLeft) continue;
        mostLeft = counter.limit - sum;
        shortage = toShortage(counter, amounts, amount, seconds);
      }
      if (shortage) return { sum, shortage };
      for (const { name } of counters) add(name, minute, amount);
      return {
        sum: sum + amount,
        release(unused) {
          for (const { name } of counters) add(name, minute, -unused);
        },
      };
    },
  };
}

/**
 * KEYS: the counters, each a hash of amounts by minute. ARGV: the amount, then the limit of each counter. Returns the
 * minute, the time in seconds, what is now reserved in the last counter, and, if the amount is not reserved, the index
 * of the counter with the least left and its minutes with their amounts.
 */
const RESERVE: Script<[number, number, number, number, [number, number][]]> = {
  answer: z.tuple([z.int(), z.int(), z.int(), z.int(), z.array(z.tuple([z.int(), z.int()]))]),
  text: `
local amount = tonumber(ARGV[1])
local seconds = tonumber(redis.call('TIME')[1])
local minute = math.floor(seconds / ${MINUTE_SECONDS})
local sum, least, short, amountsOfShort = 0, amount, 0, {}
for i, key in ipairs(KEYS) do
  local fields, amounts = redis.call('HGETALL', key), {}
  sum = 0
  for j = 1, #fields, 2 do
    if tonumber(fields[j]) <= minute - ${MINUTES_COUNTED} then redis.call('HDEL', key, fields[j])
    else
      sum = sum + fields[j + 1]
      table.insert(amounts, {tonumber(fields[j]), tonumber(fields[j + 1])})
    end
  end
  local left = ARGV[i + 1] - sum
  if left < least then least, short, amountsOfShort = left, i, amounts end
end
if short == 0 and amount > 0 then
  for _, key in ipairs(KEYS) do
    redis.call('HINCRBY', key, minute, amount)
    redis.call('EXPIRE', key, ${WINDOW_SECONDS})
  end
  sum = sum + amount
end
return {minute, seconds, sum, short, amountsOfShort}
`,
};

/** KEYS: the counters of a reservation. ARGV: its minute, and the amount to return. */
const RELEASE: Script<unknown> = {
  answer: z.unknown(),
  text: `
for _, key in ipairs(KEYS) do
  if redis.call('HEXISTS', key, ARGV[1]) == 1 and redis.call('HINCRBY', key, ARGV[1], -ARGV[2]) <= 0 then
    redis.call('HDEL', key, ARGV[1])
  end
end
return true
`,
};

/** Counts in Redis, for all replicas. */
export function createRedisLedger(redis: Redis, toKey: (counter: string) => string) {
  return {
    /** Undefined if Redis is unavailable. */
    async reserve(counters: readonly Counter[], amount: number): Promise<Entry | undefined> {
      const keys = counters.map(({ name }) => toKey(name));
      const answer = await redis.run(RESERVE, keys, [amount, ...counters.map(({ limit }) => limit)]);
      if (!answer) return undefined;
      const [minute, seconds, sum, short, amounts] = answer;
      const counter = counters[short - 1];
      if (counter) return { sum, shortage: toShortage(counter, amounts, amount, seconds) };
      return {
        sum,
        release(unused) {
          // Not retried: a lost release makes the budget too small, but a repeated one would make it too large.
          void redis.run(RELEASE, keys, [minute, unused]);
        },
      };
    },
  };
}

/** `amounts` are the counter's minutes with their amounts, in any order. */
function toShortage(
  { scope, limit }: Counter,
  amounts: readonly (readonly [minute: number, amount: number])[],
  requested: number,
  nowSeconds: number,
): Shortage {
  let excess = amounts.reduce((total, [, amount]) => total + amount, requested - limit);
  let fitsAt = nowSeconds + WINDOW_SECONDS;
  for (const [minute, amount] of amounts.toSorted(([a], [b]) => a - b)) {
    fitsAt = (minute + MINUTES_COUNTED) * MINUTE_SECONDS;
    excess -= amount;
    if (excess <= 0) break;
  }
  return { scope, retryAfterSeconds: toRetryAfterSeconds((fitsAt - nowSeconds) * 1000) };
}
