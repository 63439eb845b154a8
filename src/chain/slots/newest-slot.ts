import { LONG_AGO, monotonicNow, type MonotonicTime, msSince } from "../../time/monotonic.ts";
import { MAX_AGE_MS, MOST_RATE } from "./progress.ts";

/**
 * When the best endpoint has been below the newest slot for this long, its slot becomes the newest.
 */
const LOST_MS = 10_000;
const NO_ANSWER = { slot: 0, at: LONG_AGO };

/**
 * Tracks the newest slot of all accepted answers. If the best endpoint advances but stays below it
 * for 10 s, that endpoint's slot replaces it: the higher slot was wrong, or no endpoint that
 * reached it answers any more.
 */
export function createNewestSlot() {
  let newest = 0;
  /** The last answer of the best endpoint. */
  let best = NO_ANSWER;
  /**
   * When the best endpoint's answers fell below the newest slot; undefined while they are not below
   * it.
   */
  let belowSince: MonotonicTime | undefined;

  /** Whether the chain can have reached `slot` by now, given the best endpoint's last answer. */
  const isReached = (slot: number) =>
    best.slot === 0 || slot <= best.slot + ((msSince(best.at) + MAX_AGE_MS) / 1_000) * MOST_RATE;

  return {
    /** The newest slot; 0 before the first. */
    slot: () => newest,
    isReached,

    /**
     * Raises the newest slot to `slot` if the chain can have reached it. Any endpoint or replica
     * may report `slot`.
     */
    take(slot: number): void {
      if (slot > newest && isReached(slot)) newest = slot;
    },

    /** Records the slot of an answer of the best endpoint that is not accepted yet. */
    noteBest(slot: number): void {
      if (slot < newest) belowSince ??= monotonicNow();
    },

    /** Records an accepted answer of the best endpoint, which last advanced at `advancedAt`. */
    takeBest(slot: number, advancedAt: MonotonicTime): void {
      best = { slot, at: monotonicNow() };
      const isLost =
        belowSince !== undefined && msSince(belowSince) >= LOST_MS && advancedAt > belowSince;
      if (!isLost && slot < newest) return;
      newest = slot;
      belowSince = undefined;
    },

    /** Forgets the best endpoint's answers. The newest slot stays. */
    forgetBest(): void {
      best = NO_ANSWER;
      belowSince = undefined;
    },
  };
}
