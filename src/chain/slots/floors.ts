import { addMs, LONG_AGO, monotonicNow } from "../../time/monotonic.ts";

/** What is kept for a wallet or a coin. */
interface Floor {
  /** The slot of the amounts last shown; 0 before the first. */
  shownSlot: number;
  /** The amounts last shown. */
  amounts: readonly unknown[];
  /** The slot of the last collect; 0 without one. */
  landedSlot: number;
}

/**
 * Amounts of one slot, by a wallet's address or a coin's curve. A coin that does not exist has no
 * amounts.
 */
export type Amounts = readonly (readonly [address: string, amounts: readonly unknown[]])[];

/** Two generations are kept: up to 100,000 wallets and coins have floors, in 30 MB. */
const MAX_PER_GENERATION = 50_000;
/** After missed Redis messages, nothing older than the newest collect is shown for this long. */
const UNHEARD_MS = 60_000;

export type Floors = ReturnType<typeof createFloors>;

/**
 * Refuses stale balances, so that no shown balance goes back in time. The floor of a wallet or coin
 * is the newest slot in which this replica has shown its amounts or any replica has collected it.
 * An answer from a slot below the floor is shown only if its amounts equal those last shown.
 * Ignores a floor above the newest slot: an endpoint claimed a slot that never was. Remembers
 * the last 50,000 to 100,000 wallets and coins. All others share one floor, the newest slot of the
 * evicted ones: many lookups can evict a floor, but reveal no older balance.
 */
export function createFloors(needs: {
  /** The newest credible slot. */
  newestSlot: () => number;
  /** Called with the slot of each collect of any replica. */
  takeSlot: (slot: number) => void;
}) {
  const { newestSlot, takeSlot } = needs;
  let current = new Map<string, Floor>();
  /** The previous generation. A floor that is used again moves to `current`. */
  let before = new Map<string, Floor>();
  let forgottenSlot = 0;
  let unheard = { slot: 0, until: LONG_AGO };

  const ifReached = (slot: number) => (slot <= newestSlot() ? slot : 0);
  const unheardSlot = () => (monotonicNow() < unheard.until ? ifReached(unheard.slot) : 0);
  const floorOf = (address: string) => current.get(address) ?? before.get(address);
  const toSlots = ({ shownSlot, landedSlot }: Floor) => ({
    shownSlot: ifReached(shownSlot),
    landedSlot: ifReached(landedSlot),
  });

  function keep(address: string, floor: Floor): void {
    if (current.has(address)) return;
    before.delete(address);
    current.set(address, floor);
    if (current.size < MAX_PER_GENERATION) return;
    forgottenSlot = ifReached(forgottenSlot);
    for (const forgotten of before.values()) {
      const { shownSlot, landedSlot } = toSlots(forgotten);
      forgottenSlot = Math.max(forgottenSlot, shownSlot, landedSlot);
    }
    before = current;
    current = new Map();
  }

  function isBelow(slot: number, amounts: readonly unknown[], floor: Floor | undefined): boolean {
    if (!floor) return slot < ifReached(forgottenSlot);
    const { shownSlot, landedSlot } = toSlots(floor);
    // The collect has changed the amounts last shown.
    if (landedSlot > shownSlot) return slot < landedSlot;
    return slot < shownSlot && !isShown(amounts, floor);
  }

  return {
    /** Whether amounts read in `slot` may be shown. If so, records them as shown. */
    take(slot: number, read: Amounts): boolean {
      if (slot < unheardSlot()) return false;
      for (const [address, amounts] of read)
        if (isBelow(slot, amounts, floorOf(address))) return false;
      for (const [address, amounts] of read) {
        const floor = floorOf(address);
        // A coin that does not exist needs no floor: it has no amounts.
        if (!floor && amounts.length === 0) continue;
        const keptFloor = floor ?? { shownSlot: slot, amounts, landedSlot: 0 };
        if (slot >= ifReached(keptFloor.shownSlot)) {
          keptFloor.shownSlot = slot;
          // Keep the array if its amounts are equal: replacing it has no use.
          if (!isShown(amounts, keptFloor)) keptFloor.amounts = amounts;
        }
        keep(address, keptFloor);
      }
      return true;
    },

    /**
     * Call when a transaction has changed a wallet in `slot`, so that no older balance is shown.
     * This or another replica must have found the slot credible. Ignores 0, and a slot that
     * `takeSlot` refuses.
     */
    require(address: string, slot: number): void {
      if (slot === 0) return;
      takeSlot(slot);
      if (slot > newestSlot()) return;
      const floor = floorOf(address) ?? { shownSlot: 0, amounts: [], landedSlot: 0 };
      floor.landedSlot = Math.max(slot, ifReached(floor.landedSlot));
      keep(address, floor);
    },

    /**
     * After missed messages, call this with the newest collect's slot: for a minute, nothing older
     * is shown.
     */
    requireOfAll(slot: number): void {
      takeSlot(slot);
      // A Redis that lost its newest data may return an older slot than before.
      unheard = { slot: Math.max(slot, unheardSlot()), until: addMs(monotonicNow(), UNHEARD_MS) };
    },

    /**
     * The lowest slot for reads of this address, so that they include its last collect; 0 for any
     * slot.
     */
    landedSlotOf(address: string): number {
      return Math.max(ifReached(floorOf(address)?.landedSlot ?? forgottenSlot), unheardSlot());
    },
  };
}

const isShown = (amounts: readonly unknown[], { amounts: shownAmounts }: Floor) =>
  shownAmounts.length === amounts.length &&
  shownAmounts.every((amount, i) => amount === amounts[i]);
