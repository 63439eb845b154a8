import { createLruCache, describeCache } from "../../store/lru-cache.ts";
import { addMs, LONG_AGO, monotonicNow } from "../../time/monotonic.ts";

/** What is kept for a wallet or a coin. */
interface Floor {
  /** The slot of the amounts last shown; 0 before the first. */
  readonly shownSlot: number;
  /** The amounts last shown. */
  readonly amounts: readonly unknown[];
  /** The slot of the last collect; 0 without one. */
  readonly landedSlot: number;
}

/**
 * Amounts of one slot, by a wallet's address or a coin's curve. A coin that does not exist has no
 * amounts.
 */
export type Amounts = readonly (readonly [address: string, amounts: readonly unknown[]])[];

/** An entry takes about 300 bytes. */
const MAX_FLOORS = 100_000;
/** Longer than a provider's node lags behind. */
const LIFE_MS = 60_000;
const NO_FLOOR: Floor = { shownSlot: 0, amounts: [], landedSlot: 0 };

export type Floors = ReturnType<typeof createFloors>;

/**
 * Refuses stale balances, so that no shown balance goes back in time. The floor of a wallet or coin
 * is the newest slot in which this replica has shown its amounts or any replica has collected it,
 * within the last minute. An answer from a slot below the floor is shown only if its amounts equal
 * those last shown.
 */
export function createFloors() {
  const floors = createLruCache<string, Floor>(MAX_FLOORS, { ttl: LIFE_MS });
  /** After missed Redis messages, nothing older than the newest collect is shown for a minute. */
  let unheard = { slot: 0, until: LONG_AGO };
  const unheardSlot = () => (monotonicNow() < unheard.until ? unheard.slot : 0);

  const floorOf = (address: string) => floors.get(address) ?? NO_FLOOR;

  function isBelow(slot: number, amounts: readonly unknown[], floor: Floor): boolean {
    const { shownSlot, landedSlot } = floor;
    // The collect has changed the amounts last shown.
    if (landedSlot > shownSlot) return slot < landedSlot;
    return slot < shownSlot && !isShown(amounts, floor);
  }

  return {
    /** Whether amounts read in `slot` may be shown. If so, records them as shown. */
    take(slot: number, read: Amounts): boolean {
      if (slot < unheardSlot()) return false;
      if (read.some(([address, amounts]) => isBelow(slot, amounts, floorOf(address)))) return false;
      for (const [address, amounts] of read) {
        const floor = floorOf(address);
        // A coin that does not exist needs no floor: it has no amounts.
        if ((floor === NO_FLOOR && amounts.length === 0) || slot < floor.shownSlot) continue;
        floors.set(address, { ...floor, shownSlot: slot, amounts });
      }
      return true;
    },

    /** Call when a transaction has changed a wallet in `slot`; ignores 0, an unknown slot. */
    require(address: string, slot: number): void {
      const floor = floorOf(address);
      if (slot > floor.landedSlot) floors.set(address, { ...floor, landedSlot: slot });
    },

    /** Call after missed messages, with the newest collect's slot. */
    requireOfAll(slot: number): void {
      // A Redis that lost its newest data may return an older slot than before.
      unheard = { slot: Math.max(slot, unheardSlot()), until: addMs(monotonicNow(), LIFE_MS) };
    },

    /**
     * The lowest slot for reads of this address, so that they include its last collect; 0 for any
     * slot.
     */
    landedSlotOf: (address: string): number => Math.max(floorOf(address).landedSlot, unheardSlot()),

    describeCache: () => describeCache(floors),
  };
}

const isShown = (amounts: readonly unknown[], floor: Floor) =>
  floor.amounts.length === amounts.length && floor.amounts.every((each, i) => each === amounts[i]);
