import { createLruCache } from "../../store/lru-cache.ts";
import {
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  msSince,
} from "../../time/monotonic.ts";

const MAX_FAILURES = 3;
const HOUR_MS = 3_600_000;
/** Evicting all entries takes as many paid failures. */
const MAX_ENTRIES = 50_000;

export type FailingBlocks = ReturnType<typeof createFailingBlocks>;

/**
 * An address block that makes an account's transactions with coins fail on the chain three times in
 * an hour cannot collect the account's coins for an hour.
 */
export function createFailingBlocks() {
  /** The times of the last three failures, by the account's address and the address block. */
  const failures = createLruCache<string, readonly MonotonicTime[]>(MAX_ENTRIES, {
    ttl: 2 * HOUR_MS,
  });
  const timesOf = (address: string, block: string) => failures.get(`${address} ${block}`) ?? [];

  return {
    failed(address: string, block: string | undefined): void {
      if (block === undefined) return;
      const times = [...timesOf(address, block), monotonicNow()].slice(-MAX_FAILURES);
      failures.set(`${address} ${block}`, times);
    },

    /** Returns for how many more ms the block cannot collect the account's coins; or 0. */
    leftMs(address: string, block: string | undefined): number {
      const times = block === undefined ? [] : timesOf(address, block);
      const [first = LONG_AGO, last = LONG_AGO] = [times[0], times.at(-1)];
      if (times.length < MAX_FAILURES || msBetween(first, last) > HOUR_MS) return 0;
      return Math.max(0, HOUR_MS - msSince(last));
    },
  };
}
