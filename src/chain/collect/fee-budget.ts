import { z } from "zod";
import type { Redis, Script } from "../../upstream/redis.ts";
import type { Lamports } from "../lamports.ts";

/** A fee reserved in the budget. */
export interface Reservation {
  /** Returns `unused` lamports to the budget; only what was certainly not spent. Negative: charges more. */
  release(unused: Lamports): void;
}

export type FeeBudget = ReturnType<typeof createFeeBudget>;

const MINUTE_MS = 60_000;
/** A minute's spending counts until all of it is an hour old. */
const MINUTES_COUNTED = 61;

/**
 * KEYS: the spending of the last hour, lamports by minute. ARGV: the fee, the budget.
 * Returns the minute that the fee counts in, or an empty list when the fee exceeds the rest of the budget.
 */
const RESERVE: Script<number[]> = {
  answer: z.array(z.int()).max(1),
  text: `
local minute = math.floor(redis.call('TIME')[1] / 60)
local spent = 0
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  if tonumber(entries[i]) <= minute - ${MINUTES_COUNTED} then redis.call('HDEL', KEYS[1], entries[i])
  else spent = spent + tonumber(entries[i + 1]) end
end
if spent + tonumber(ARGV[1]) > tonumber(ARGV[2]) then return {} end
redis.call('HINCRBY', KEYS[1], minute, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ${MINUTES_COUNTED * MINUTE_MS})
return {minute}
`,
};

/** KEYS: as for RESERVE. ARGV: a minute, and a fee that was reserved in it. */
const RELEASE: Script<unknown> = {
  answer: z.unknown(),
  text: `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HINCRBY', KEYS[1], ARGV[1], -ARGV[2]) end
return true
`,
};

/**
 * Limits the fees of all transactions of a fee payer in any hour to `budgetLamportsPerHour`: in this process
 * always, and of all replicas together while Redis is up.
 */
export function createFeeBudget({
  feePayer,
  budgetLamportsPerHour,
  redis,
}: {
  feePayer: string;
  budgetLamportsPerHour: Lamports;
  redis: Redis | undefined;
}) {
  const keys = [`v2:fees:${feePayer}`];
  const spentInMinute = new Map<number, bigint>();

  function add(minute: number, lamports: bigint): void {
    const spent = spentInMinute.get(minute);
    if (spent !== undefined) spentInMinute.set(minute, spent + lamports);
  }

  /** The minute that `fee` counts in; undefined when it exceeds the rest of this process's budget. */
  function reserveInMemory(fee: Lamports): number | undefined {
    const minute = Math.floor(performance.now() / MINUTE_MS);
    let spent = 0n;
    for (const [earlier, lamports] of spentInMinute) {
      if (earlier <= minute - MINUTES_COUNTED) spentInMinute.delete(earlier);
      else spent += lamports;
    }
    if (spent + fee > budgetLamportsPerHour) return undefined;
    spentInMinute.set(minute, (spentInMinute.get(minute) ?? 0n) + fee);
    return minute;
  }

  return {
    /** Reserves `fee` in the budget; undefined when it exceeds the rest. */
    async reserve(fee: Lamports): Promise<Reservation | undefined> {
      const minute = reserveInMemory(fee);
      if (minute === undefined) return undefined;
      const sharedMinutes = await redis?.run(RESERVE, keys, [String(fee), String(budgetLamportsPerHour)]);
      if (sharedMinutes?.length === 0) {
        add(minute, 0n - fee);
        return undefined;
      }
      return {
        release(unused) {
          add(minute, 0n - unused);
          // Not retried: a lost release makes the budget too small, but a repeated one would make it too large.
          for (const shared of sharedMinutes ?? []) void redis?.run(RELEASE, keys, [shared, String(unused)]);
        },
      };
    },
  };
}
