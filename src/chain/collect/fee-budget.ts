import { z } from "zod";
import type { Redis, Script } from "../../upstream/redis.ts";
import type { Lamports } from "../lamports.ts";

/** What was taken out of the budget. */
export interface Reservation {
  /** Puts it back: what it was taken for was never sent. */
  release(): void;
}

export type FeeBudget = ReturnType<typeof createFeeBudget>;

const MINUTE_MS = 60_000;
/** What was spent in a minute counts until all of it is an hour old. */
const MINUTES_COUNTED = 61;

/**
 * KEYS: the spending of the last hour, lamports by minute. ARGV: what to take, the budget.
 * Gives the minute that it was taken in, or nothing when less is left.
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

/** KEYS: as above. ARGV: a minute, and what was taken in it. */
const GIVE_BACK: Script<unknown> = {
  answer: z.unknown(),
  text: `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HINCRBY', KEYS[1], ARGV[1], -ARGV[2]) end
return true
`,
};

/**
 * What all transactions of a fee payer together may cost in any hour: `budgetLamportsPerHour` at most on this
 * process, and on all replicas together while Redis can be had.
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
  const keys = [`fees:${feePayer}`];
  const spentInMinute = new Map<number, bigint>();

  function add(minute: number, lamports: bigint): void {
    const spent = spentInMinute.get(minute);
    if (spent !== undefined) spentInMinute.set(minute, spent + lamports);
  }

  /** The minute that `fee` was taken in here, or undefined when less is left. */
  function reserveHere(fee: Lamports): number | undefined {
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
    /** Takes `fee` out of the budget; undefined when less than that is left. */
    async reserve(fee: Lamports): Promise<Reservation | undefined> {
      const minute = reserveHere(fee);
      if (minute === undefined) return undefined;
      const taken = await redis?.run(RESERVE, keys, [String(fee), String(budgetLamportsPerHour)]);
      if (taken?.length === 0) {
        add(minute, 0n - fee);
        return undefined;
      }
      return {
        release() {
          add(minute, 0n - fee);
          // When this is lost the budget is smaller than it could be; done twice it would be too large.
          for (const shared of taken ?? []) void redis?.run(GIVE_BACK, keys, [shared, String(fee)]);
        },
      };
    },
  };
}
