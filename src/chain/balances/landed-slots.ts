import { z } from "zod";
import { redisKeys } from "../../store/redis-keys.ts";
import type { Redis } from "../../store/redis.ts";
import { script } from "../../store/script.ts";
import type { Floors } from "./floors.ts";

/** How long Redis keeps the newest slot: longer than a provider's node lags behind. */
const KEPT_MS = 60_000;

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
if tonumber(slot) > newest then redis.call('SET', landedSlot, slot, 'PX', ${KEPT_MS}) end
redis.pcall('PUBLISH', landedSlot, message)
return true
`,
});

/** A longer time to live is of a write while Redis's clock was ahead. */
const READ = script({
  keys: ["landedSlot"],
  answer: z.string().nullable(),
  text: `
if redis.call('PTTL', landedSlot) > ${KEPT_MS} then
  redis.call('PEXPIRE', landedSlot, ${KEPT_MS})
end
return redis.call('GET', landedSlot)
`,
});

/**
 * Tells all replicas with this fee payer which account was collected in which slot, so that no
 * replica shows an older state. Slots are pushed, so lookups never wait for them. Redis keeps the
 * newest slot for a minute: a replica that may have missed a message applies this slot to all
 * accounts.
 */
export function createLandedSlots(needs: {
  feePayer: string;
  redis: Redis | undefined;
  floors: Pick<Floors, "require" | "requireOfAll">;
}) {
  const { feePayer, redis, floors } = needs;
  const landedSlot = redisKeys.landedSlot(feePayer);

  /**
   * `text`: a slot and an account's address, or only a slot, which then applies to all accounts.
   */
  function receive(text: string | null | undefined): void {
    const [, digits, address] = /^([1-9]\d*)(?: (.+))?$/.exec(text ?? "") ?? [];
    const slot = Number(digits);
    if (!Number.isSafeInteger(slot)) return;
    if (address === undefined) floors.requireOfAll(slot);
    else floors.require(address, slot);
  }

  redis?.subscribe(landedSlot, {
    onMessage: receive,
    onReconnect: () => void redis.run(READ, { landedSlot }).then(receive),
  });

  return {
    /**
     * Tells the other replicas that a transaction changed `address` in `slot`. Ignores 0, an
     * unknown slot.
     */
    announce(address: string, slot: number): void {
      const message = `${slot} ${address}`;
      if (slot > 0) void redis?.run(ANNOUNCE, { landedSlot, slot, message });
    },
  };
}
