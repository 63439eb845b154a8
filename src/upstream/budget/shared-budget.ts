import { z } from "zod";
import type { Logger } from "../../observability/log.ts";
import type { Redis, Script } from "../redis.ts";
import {
  createLedger,
  MINUTE_SECONDS,
  MINUTES_COUNTED,
  toShortage,
  WINDOW_SECONDS,
  type Counter,
  type Reservation,
} from "./ledger.ts";

/** A replica that cannot reach Redis uses at most this part: four replicas together stay within the budget. */
const PART_WITHOUT_REDIS = 1 / 4;
/** The counter of everything that is spent. */
const ALL = "all";

/** A part of a budget, with limits of its own. */
export interface BudgetPart {
  readonly name: string;
  /** For all reservations in this part together. */
  readonly limit: number;
  /** For those of one caller. */
  readonly callerLimit: number;
}

/**
 * KEYS: the counters, of which a reservation passes ALL last; each is a hash of amounts by minute. ARGV: the least and
 * the most to reserve, then the limit of each counter.
 * Returns the reserved amount, its minute, the time in seconds, the sum of the last counter, the index of the
 * counter that limits the amount or 0, and that counter's minutes and amounts.
 */
const RESERVE: Script<[number, number, number, number, number, ...number[]]> = {
  answer: z.tuple([z.int(), z.int(), z.int(), z.int(), z.int()], z.int()),
  text: `
local seconds = tonumber(redis.call('TIME')[1])
local minute = math.floor(seconds / ${MINUTE_SECONDS})
local least, amount = tonumber(ARGV[1]), tonumber(ARGV[2])
local short, spent, used = 0, {}, 0
for i, key in ipairs(KEYS) do
  local entries, counted = redis.call('HGETALL', key), {}
  used = 0
  for j = 1, #entries, 2 do
    if tonumber(entries[j]) <= minute - ${MINUTES_COUNTED} then redis.call('HDEL', key, entries[j])
    else
      used = used + entries[j + 1]
      table.insert(counted, tonumber(entries[j]))
      table.insert(counted, tonumber(entries[j + 1]))
    end
  end
  local left = tonumber(ARGV[i + 2]) - used
  if left < amount then amount, short, spent = left, i, counted end
end
if amount < least or amount < 0 then amount = 0 end
if amount > 0 then
  for _, key in ipairs(KEYS) do
    redis.call('HINCRBY', key, minute, amount)
    redis.call('EXPIRE', key, ${WINDOW_SECONDS})
  end
end
return {amount, minute, seconds, used + amount, short, unpack(spent)}
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

/**
 * Limits what all callers together spend in any hour to `limit`, and what one caller spends to `callerLimit`: over
 * all replicas while Redis is available, in this process without `redis`. A replica that cannot reach Redis allows
 * a quarter of each limit, less what it has spent itself.
 */
export function createSharedBudget({
  name,
  limit,
  callerLimit,
  redis,
  log,
}: {
  /** Distinguishes the budget from others in the same Redis. */
  name: string;
  limit: number;
  callerLimit: number;
  redis: Redis | undefined;
  log: Logger;
}) {
  const toKey = (counter: string) => `v2:budget:{${name}}:${counter}`;
  const ledger = createLedger();
  let isAlone = false;
  /** What all replicas have spent, by counter, according to Redis's last answer. */
  const sharedSums = new Map<string, number>();

  function logWhetherAlone(isAnswered: boolean): void {
    if (!isAnswered && !isAlone) {
      log.warn(
        { budget: name, limit: withoutRedis(limit), callerLimit: withoutRedis(callerLimit) },
        "until Redis answers, this replica allows a quarter of the budget and of each caller's share",
      );
    }
    isAlone = !isAnswered;
  }

  return {
    /**
     * Reserves `amount` for a caller, or as much of it as fits if that is at least `least`. The reservation also
     * counts in `part`, if given, and is then also subject to the part's limits.
     */
    async reserve({
      caller,
      amount,
      least = amount,
      part,
    }: {
      caller: string;
      amount: number;
      least?: number;
      part?: BudgetPart | undefined;
    }): Promise<Reservation> {
      const counters: Counter[] = [
        { name: `caller:${caller}`, limit: callerLimit, scope: "CALLER" },
        ...(part ? countersOf(part, caller) : []),
        { name: ALL, limit, scope: "SERVICE" },
      ];
      const keys = counters.map((counter) => toKey(counter.name));
      const limits = counters.map((counter) => counter.limit);
      const answer = await redis?.run(RESERVE, keys, [least, amount, ...limits]);
      if (redis) logWhetherAlone(answer !== undefined);

      if (!answer) {
        const allowed = redis
          ? counters.map((counter) => ({ ...counter, limit: withoutRedis(counter.limit) }))
          : counters;
        return ledger.reserve(allowed, least, amount);
      }
      const [reserved, minute, seconds, sum, short, ...entries] = answer;
      sharedSums.set(ALL, sum);
      // Not retried: a lost release makes the budget too small, but a repeated one would make it too large.
      const releaseShared = (unused: number) => void redis?.run(RELEASE, keys, [minute, unused]);
      // Counted here too, for the time without Redis, and because Redis may have lost what was spent: no replica
      // exceeds the limits by itself.
      const own = ledger.reserve(counters, least, reserved);
      if (own.amount < reserved) releaseShared(reserved - own.amount);
      const limiting = counters[short - 1];
      const shortage = own.shortage ?? (limiting && toShortage(limiting, toPairs(entries), amount, seconds));
      return {
        amount: own.amount,
        ...(shortage && { shortage }),
        release(unused) {
          own.release(unused);
          releaseShared(unused);
        },
      };
    },

    /** How much of the budget, or of this part of it, is spent, 0 to 1. With Redis, as of its last answer. */
    usedPart(part?: BudgetPart): number {
      const counter = part ? { name: toPartName(part), limit: part.limit } : { name: ALL, limit };
      if (counter.limit === 0) return 1;
      if (!redis) return ledger.sum(counter.name) / counter.limit;
      if (isAlone) return ledger.sum(counter.name) / withoutRedis(counter.limit);
      void redis.run(RESERVE, [toKey(counter.name)], [0, 0, counter.limit]).then((answer) => {
        if (answer) sharedSums.set(counter.name, answer[3]);
      });
      return (sharedSums.get(counter.name) ?? 0) / counter.limit;
    },
  };
}

const toPartName = ({ name }: BudgetPart) => `part:${name}`;

function countersOf(part: BudgetPart, caller: string): Counter[] {
  const name = toPartName(part);
  return [
    { name: `${name}:caller:${caller}`, limit: part.callerLimit, scope: "CALLER" },
    { name, limit: part.limit, scope: "SERVICE" },
  ];
}

/** What a replica that cannot reach Redis may use of a limit. */
export function withoutRedis(limit: number): number {
  return Math.ceil(limit * PART_WITHOUT_REDIS);
}

function toPairs(flat: readonly number[]): [number, number][] {
  return flat.flatMap((value, i) => (i % 2 === 0 ? [[value, flat[i + 1]!] as [number, number]] : []));
}
