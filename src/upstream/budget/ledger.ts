import { LRUCache } from "lru-cache";
import { toRetryAfterSeconds } from "../../contract/contract-error.ts";

/** Whose limit is reached: the caller's share, or the budget of the whole service. */
export type BudgetScope = "CALLER" | "SERVICE";

/** Why a reservation is smaller than requested. */
export interface Shortage {
  readonly scope: BudgetScope;
  /** Whole seconds until enough of what was spent no longer counts. */
  readonly retryAfterSeconds: number;
}

/** An amount reserved in a budget. */
export interface Reservation {
  /** 0 if less than `least` fits. */
  readonly amount: number;
  /** Absent if everything fits. */
  readonly shortage?: Shortage;
  /** Returns `unused` of the amount to the budget. May be called again for further parts. */
  release(unused: number): void;
}

/** A sum that reservations count in, and its limit for the window. */
export interface Counter {
  readonly name: string;
  readonly limit: number;
  readonly scope: BudgetScope;
}

export const MINUTE_SECONDS = 60;
/** A minute's spending counts until all of it is an hour old. */
export const MINUTES_COUNTED = 61;
export const WINDOW_SECONDS = MINUTES_COUNTED * MINUTE_SECONDS;
/** The callers whose spending a process remembers. Each takes about 500 bytes. */
const MAX_CALLERS = 20_000;

/** Counts in the memory of this process, as the scripts do in Redis. */
export function createLedger() {
  const counts = new LRUCache<string, Map<number, number>>({
    max: MAX_CALLERS,
    ttl: WINDOW_SECONDS * 1000,
    perf: performance,
  });
  const now = () => performance.now() / 1000;
  const toMinute = (seconds: number) => Math.floor(seconds / MINUTE_SECONDS);

  /** The minutes that still count, with their amounts. */
  function entriesOf(name: string): [number, number][] {
    const first = toMinute(now()) - MINUTES_COUNTED;
    return [...(counts.get(name) ?? [])].filter(([minute]) => minute > first);
  }
  const sum = (name: string) => entriesOf(name).reduce((total, [, amount]) => total + amount, 0);

  function change(name: string, minute: number, by: number): void {
    const amounts = new Map(entriesOf(name));
    const amount = (amounts.get(minute) ?? 0) + by;
    if (amount > 0) amounts.set(minute, amount);
    else amounts.delete(minute);
    if (amounts.size > 0) counts.set(name, amounts);
    else counts.delete(name);
  }

  function add(counters: readonly Counter[], amount: number): Reservation {
    const minute = toMinute(now());
    if (amount > 0) for (const { name } of counters) change(name, minute, amount);
    return {
      amount,
      release(unused) {
        for (const { name } of counters) change(name, minute, -unused);
      },
    };
  }

  return {
    sum,
    /** Reserves as much of `most` as fits in all counters, or nothing if that is less than `least`. */
    reserve(counters: readonly Counter[], least: number, most: number): Reservation {
      let amount = most;
      let limiting: Counter | undefined;
      for (const counter of counters) {
        const left = counter.limit - sum(counter.name);
        if (left < amount) [amount, limiting] = [left, counter];
      }
      const shortage = limiting && toShortage(limiting, entriesOf(limiting.name), most, now());
      return { ...add(counters, amount < least ? 0 : amount), ...(shortage && { shortage }) };
    },
  };
}

/** `entries` are the counter's minutes with their amounts, in any order. */
export function toShortage(
  { scope, limit }: Counter,
  entries: readonly (readonly [minute: number, amount: number])[],
  requested: number,
  nowSeconds: number,
): Shortage {
  let excess = entries.reduce((total, [, amount]) => total + amount, requested - limit);
  let fitsAt = nowSeconds + WINDOW_SECONDS;
  for (const [minute, amount] of entries.toSorted(([a], [b]) => a - b)) {
    fitsAt = (minute + MINUTES_COUNTED) * MINUTE_SECONDS;
    excess -= amount;
    if (excess <= 0) break;
  }
  return { scope, retryAfterSeconds: toRetryAfterSeconds((fitsAt - nowSeconds) * 1000) };
}
