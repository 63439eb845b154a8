/** The part of graphql-rate-limit's identity that this store reads; the field's is `request:<cost>`. */
interface Identity {
  readonly contextIdentity: string;
  readonly fieldIdentity: string;
}

/** About 300 bytes each. */
const MAX_CALLERS = 200_000;

/**
 * A store for graphql-rate-limit that makes its decision exact.
 *
 * The library reads the timestamps of earlier requests, decides, and writes them back; between the two
 * another request can read the same. Here the read itself prunes, decides by the same rule and reserves,
 * in one synchronous step, and the write does nothing. The library is given one present timestamp for
 * each request that counts, so that it comes to the same decision however late it looks at them.
 *
 * The map is in the order of each caller's last admitted request: whoever has been away longest comes
 * first, and is forgotten first.
 */
export function createMemoryStore({ max, windowMs }: { max: number; windowMs: number }) {
  const callers = new Map<string, number[]>();

  const inWindow = (caller: string, now: number) =>
    (callers.get(caller) ?? []).filter((at) => at + windowMs > now);

  /** Drops those whose requests have all left the window, and the oldest when there are too many. */
  function forgetOldest(now: number): void {
    for (const [caller, times] of callers) {
      const isExpired = times.at(-1)! + windowMs <= now;
      if (!isExpired && callers.size <= MAX_CALLERS) return;
      callers.delete(caller);
    }
  }

  return {
    getForIdentity({ contextIdentity: caller, fieldIdentity }: Identity): number[] {
      const cost = Number(fieldIdentity.split(":")[1]);
      const now = performance.now();
      const times = inWindow(caller, now);
      const counted = times.length;
      if (counted + cost <= max) {
        callers.delete(caller);
        callers.set(caller, [...times, ...new Array<number>(cost).fill(now)]);
        forgetOldest(now);
      }
      return new Array<number>(counted).fill(Date.now());
    },

    setForIdentity(): void {
      // getForIdentity has reserved.
    },

    /** How long until `cost` requests of `caller` would pass; for a cost above the whole budget, until it is whole. */
    millisecondsUntilFree(caller: string, cost: number): number {
      const now = performance.now();
      const times = inWindow(caller, now);
      const leaveFirst = Math.min(times.length + cost - max, times.length);
      if (leaveFirst <= 0) return cost > max ? windowMs : 0;
      return windowMs - (now - times[leaveFirst - 1]!);
    },
  };
}
