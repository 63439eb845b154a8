import { z } from "zod";
import { createLruCache, describeCache } from "../../store/lru-cache.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import type { Redis } from "../../store/redis.ts";
import { script } from "../../store/script.ts";
import { addMs, LONG_AGO, monotonicNow } from "../../time/monotonic.ts";

/** What is kept for a wallet or a coin. */
interface Floor {
  /** The slot of the amounts last shown; 0 before the first. */
  readonly shownSlot: number;
  /** The amounts last shown. */
  readonly amounts: string;
  /** The slot of the last collect; 0 without one. */
  readonly landedSlot: number;
}

/**
 * Amounts of one slot as a text, by a wallet's address or a coin's curve. Empty for a coin that
 * does not exist.
 */
export type Amounts = readonly (readonly [address: string, amounts: string])[];

/** An entry takes about 300 bytes. */
const MAX_FLOORS = 100_000;
/** Longer than a provider's node lags behind. */
const LIFE_MS = 60_000;
const NO_FLOOR: Floor = { shownSlot: 0, amounts: "", landedSlot: 0 };

/**
 * `landedSlot` is also the channel's name. Uses `pcall`, so that an ACL user without permission for
 * the channel can still write the key.
 */
const ANNOUNCE = script({
  keys: ["landedSlot"],
  args: ["slot", "message"],
  answer: z.unknown(),
  text: `
local newest = tonumber(redis.call('GET', landedSlot)) or 0
if tonumber(slot) > newest then redis.call('SET', landedSlot, slot, 'PX', ${LIFE_MS}) end
redis.pcall('PUBLISH', landedSlot, message)
return true
`,
});

/** A longer time to live is of a write while Redis's clock was ahead. */
const READ = script({
  keys: ["landedSlot"],
  answer: z.string().nullable(),
  text: `
if redis.call('PTTL', landedSlot) > ${LIFE_MS} then
  redis.call('PEXPIRE', landedSlot, ${LIFE_MS})
end
return redis.call('GET', landedSlot)
`,
});

export type Floors = ReturnType<typeof createFloors>;

/**
 * Refuses stale balances, so that no shown balance goes back in time. The floor of a wallet or coin
 * is the newest slot in which this replica has shown its amounts or any replica has collected it,
 * within the last minute. An answer from a slot below the floor is shown only if its amounts equal
 * those last shown.
 *
 * Replicas with the same fee payer tell each other the slots of collects through a channel of
 * Redis, so lookups never wait for them. Redis keeps the newest slot for a minute: it is the floor
 * of all wallets at a replica that may have missed a message.
 */
export function createFloors({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  const landedSlot = redisKeys.landedSlot(feePayer);
  const floors = createLruCache<string, Floor>(MAX_FLOORS, { ttl: LIFE_MS });
  /** After missed Redis messages, nothing older than the newest collect is shown for a minute. */
  let unheard = { slot: 0, until: LONG_AGO };
  const unheardSlot = () => (monotonicNow() < unheard.until ? unheard.slot : 0);

  const floorOf = (address: string) => floors.get(address) ?? NO_FLOOR;

  function isBelow(slot: number, amounts: string, floor: Floor): boolean {
    const { shownSlot, landedSlot } = floor;
    // The collect has changed the amounts last shown.
    if (landedSlot > shownSlot) return slot < landedSlot;
    return slot < shownSlot && amounts !== floor.amounts;
  }

  function require(address: string, slot: number): void {
    const floor = floorOf(address);
    if (slot > floor.landedSlot) floors.set(address, { ...floor, landedSlot: slot });
  }

  /**
   * `text`: a slot and the address that was collected, or only a slot, which then applies to all
   * addresses.
   */
  function receive(text: string | null | undefined): void {
    const [, digits, address] = /^([1-9]\d*)(?: (.+))?$/.exec(text ?? "") ?? [];
    const slot = Number(digits);
    if (!Number.isSafeInteger(slot)) return;
    if (address !== undefined) require(address, slot);
    // A Redis that lost its newest data may return an older slot than before.
    else unheard = { slot: Math.max(slot, unheardSlot()), until: addMs(monotonicNow(), LIFE_MS) };
  }

  redis?.subscribe(landedSlot, {
    onMessage: receive,
    onReconnect: () => void redis.run(READ, { landedSlot }).then(receive),
  });

  return {
    /** Whether amounts read in `slot` may be shown. If so, records them as shown. */
    take(slot: number, read: Amounts): boolean {
      if (slot < unheardSlot()) return false;
      if (read.some(([address, amounts]) => isBelow(slot, amounts, floorOf(address)))) return false;
      for (const [address, amounts] of read) {
        const floor = floorOf(address);
        // A coin that does not exist needs no floor: it has no amounts.
        if ((floor === NO_FLOOR && amounts === "") || slot < floor.shownSlot) continue;
        floors.set(address, { ...floor, shownSlot: slot, amounts });
      }
      return true;
    },

    /** Call when a transaction has changed a wallet in `slot`; ignores 0, an unknown slot. */
    require,

    /**
     * Tells all replicas that a transaction changed a wallet or a coin in `slot`, once this one has
     * Redis.
     */
    announce(address: string, slot: number): void {
      require(address, slot);
      redis?.runLater(ANNOUNCE, { landedSlot, slot, message: `${slot} ${address}` }, LIFE_MS);
    },

    /**
     * The lowest slot for reads of this address, so that they include its last collect; 0 for any
     * slot.
     */
    landedSlotOf: (address: string): number => Math.max(floorOf(address).landedSlot, unheardSlot()),

    describeCache: () => describeCache(floors),
  };
}
