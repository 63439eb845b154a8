/** What is known of a wallet, or of a coin. */
interface Floor {
  /** The slot of what was last shown, or of the last collect if that is newer. */
  slot: number;
  /** What was shown; undefined if a collect has changed it since. */
  amounts: readonly unknown[] | undefined;
  /** The slot of the last collect; 0 without one. */
  landedSlot: number;
}

/**
 * Amounts read in one slot, by the address of the wallet or the coin that has them. Equal ones are `===`. Empty for a
 * coin that does not exist.
 */
export type Amounts = readonly (readonly [address: string, amounts: readonly unknown[]])[];

/** Twice as many wallets and coins have floors at most, which takes 30 MB. */
const MAX_PER_GENERATION = 50_000;
/** How long all wallets have the floor of collects that this replica may not have heard of. */
const UNHEARD_MS = 60_000;

export type Floors = ReturnType<typeof createFloors>;

/**
 * Refuses stale balances, so that none goes back in time. The floor of a wallet or a coin is the newest slot in which this
 * replica has shown it or any replica has collected it. An answer from a slot below the floor is shown only if its amounts
 * are the same. A floor above the newest supported slot does not count: it was wrong, or the cluster was rolled back.
 *
 * Remembers the last 50,000 to 100,000 wallets and coins. All others have one floor, the newest slot of the forgotten ones,
 * so no number of lookups lets an older balance through.
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
  let current = new Map<string, Floor>();
  /** Those of the generation before that have not been needed since. */
  let before = new Map<string, Floor>();
  let forgottenSlot = 0;
  let unheard = { slot: 0, until: -Infinity };

  const ifReached = (slot: number) => (slot <= newestSlot() ? slot : 0);
  const unheardSlot = () => (performance.now() < unheard.until ? ifReached(unheard.slot) : 0);
  const floorOf = (address: string) => current.get(address) ?? before.get(address);

  function keep(address: string, floor: Floor): void {
    if (current.has(address)) return;
    before.delete(address);
    current.set(address, floor);
    if (current.size < MAX_PER_GENERATION) return;
    for (const { slot } of before.values()) forgottenSlot = Math.max(ifReached(forgottenSlot), slot);
    before = current;
    current = new Map();
  }

  function isBelow(slot: number, amounts: readonly unknown[], floor: Floor | undefined): boolean {
    if (!floor) return slot < ifReached(forgottenSlot);
    return slot < ifReached(floor.slot) && !isShown(amounts, floor);
  }

  return {
    /** Whether amounts of `slot` may be shown. If so, they count as shown. */
    take(slot: number, read: Amounts): boolean {
      if (slot < unheardSlot()) return false;
      for (const [address, amounts] of read) if (isBelow(slot, amounts, floorOf(address))) return false;
      for (const [address, amounts] of read) {
        const floor = floorOf(address);
        // A coin that does not exist cannot go back in time.
        if (!floor && amounts.length === 0) continue;
        const kept = floor ?? { slot, amounts, landedSlot: 0 };
        if (slot >= ifReached(kept.slot)) {
          kept.slot = slot;
          // Keep equal amounts, so that a lookup does not replace them for nothing.
          if (!isShown(amounts, kept)) kept.amounts = amounts;
        }
        keep(address, kept);
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
      if (slot > newestSlot()) return;
      const floor = floorOf(address) ?? { slot: 0, amounts: undefined, landedSlot: 0 };
      floor.landedSlot = Math.max(slot, ifReached(floor.landedSlot));
      if (slot > ifReached(floor.slot)) Object.assign(floor, { slot, amounts: undefined });
      keep(address, floor);
    },

    /** Call with the newest collect's slot when this replica may have missed some: nothing older is shown for a minute. */
    requireOfAll(slot: number): void {
      takeSlot(slot);
      // A Redis that lost its newest data may return an older slot than before.
      unheard = { slot: Math.max(slot, unheardSlot()), until: performance.now() + UNHEARD_MS };
    },

    /** The slot of the last collect that a wallet's reads must show; 0 without one that endpoints can have reached. */
    landedSlotOf(address: string): number {
      return Math.max(ifReached(floorOf(address)?.landedSlot ?? forgottenSlot), unheardSlot());
    },
  };
}

const isShown = (amounts: readonly unknown[], { amounts: shown }: Floor) =>
  shown?.length === amounts.length && shown.every((amount, i) => amount === amounts[i]);
