import { LRUCache } from "lru-cache";

/** What is known of a wallet, or of a coin. */
interface Floor {
  /** The slot of what was last shown, or of the last collect if that is newer. */
  slot: number;
  /** What was shown; undefined if a collect has changed it since. */
  amounts: readonly unknown[] | undefined;
  /** The slot of the last collect; 0 without one. */
  landedSlot: number;
}

/** Amounts read in one slot, by the address of the wallet or the coin that has them. Equal ones are `===`. */
export type ReadAmounts = readonly (readonly [address: string, amounts: readonly unknown[]])[];

const MAX_FLOORS = 20_000;
/** How long all wallets have the floor of collects that this replica may not have heard of. */
const UNHEARD_MS = 60_000;

export type Floors = ReturnType<typeof createFloors>;

/**
 * Keeps balances from going back in time: an answer below the slot of what this replica has last shown of a wallet, or
 * below the wallet's last collect at any replica, is shown only if the amounts are the same. A floor above the newest
 * supported slot does not count: it was wrong, or the cluster was rolled back. Knows the last 20,000 wallets and coins.
 */
export function createFloors({
  newestSlot,
  takeSlot,
}: {
  /** The newest slot that is supported. */
  newestSlot: () => number;
  /** Called with each slot that another replica has found supported. */
  takeSlot: (slot: number) => void;
}) {
  const floors = new LRUCache<string, Floor>({ max: MAX_FLOORS });
  let unheard = { slot: 0, until: -Infinity };

  const unheardSlot = () =>
    performance.now() < unheard.until && unheard.slot <= newestSlot() ? unheard.slot : 0;

  function isBelow(slot: number, amounts: readonly unknown[], floor: Floor): boolean {
    if (slot >= floor.slot || floor.slot > newestSlot()) return false;
    return !floor.amounts?.every((amount, i) => amount === amounts[i]);
  }

  return {
    /** Whether amounts of `slot` may be shown. If so, they count as shown. */
    take(slot: number, read: ReadAmounts): boolean {
      if (slot < unheardSlot()) return false;
      for (const [address, amounts] of read) {
        const floor = floors.get(address);
        if (floor && isBelow(slot, amounts, floor)) return false;
      }
      for (const [address, amounts] of read) {
        const floor = floors.get(address);
        if (!floor) floors.set(address, { slot, amounts, landedSlot: 0 });
        else if (slot >= floor.slot || floor.slot > newestSlot()) {
          floor.slot = slot;
          floor.amounts = amounts;
        }
      }
      return true;
    },

    /**
     * Call when a transaction has changed a wallet in `slot`, which this or another replica has found supported: what
     * is older is not shown. Ignores 0, and a slot that does not become the newest although it is above it.
     */
    require(address: string, slot: number): void {
      if (slot === 0) return;
      takeSlot(slot);
      const newest = newestSlot();
      if (slot > newest) return;
      const floor = floors.get(address) ?? { slot: 0, amounts: undefined, landedSlot: 0 };
      if (slot > floor.landedSlot || floor.landedSlot > newest) floor.landedSlot = slot;
      if (slot > floor.slot || floor.slot > newest) Object.assign(floor, { slot, amounts: undefined });
      floors.set(address, floor);
    },

    /** Call with the newest collect's slot when this replica may have missed some: nothing older is shown for a minute. */
    requireOfAll(slot: number): void {
      takeSlot(slot);
      // A Redis that lost its newest data may return an older slot than before.
      unheard = { slot: Math.max(slot, unheardSlot()), until: performance.now() + UNHEARD_MS };
    },

    /** The slot of the last collect that a wallet's reads must show; 0 without one that endpoints can have reached. */
    landedSlotOf(address: string): number {
      const landedSlot = floors.get(address)?.landedSlot ?? 0;
      return Math.max(landedSlot <= newestSlot() ? landedSlot : 0, unheardSlot());
    },
  };
}
