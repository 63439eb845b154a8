import { z } from "zod";
import { redisKeys } from "../../store/redis-keys.ts";
import type { Redis, Script } from "../../store/redis.ts";
import type { Floors } from "./stale-balances.ts";

/** How long Redis keeps the newest slot: longer than a provider's node lags behind. */
const KEPT_MS = 60_000;

/**
 * KEYS: the newest landed slot's key, which is also the channel's name. ARGV: a slot, KEPT_MS, the
 * message. Uses `pcall`, so that an ACL user without permission for the channel can still write the
 * key.
 */
const ANNOUNCE: Script<unknown> = {
  answer: z.unknown(),
  text: `
local newest = tonumber(redis.call('GET', KEYS[1])) or 0
if tonumber(ARGV[1]) > newest then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
redis.pcall('PUBLISH', KEYS[1], ARGV[3])
return true
`,
};

/**
 * KEYS: the newest landed slot's key. ARGV: KEPT_MS. A longer time to live is of a write while
 * Redis's clock was ahead.
 */
const READ: Script<string | null> = {
  answer: z.string().nullable(),
  text: `
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return redis.call('GET', KEYS[1])
`,
};

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
  const key = redisKeys.landedSlot(feePayer);

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

  redis?.subscribe(key, {
    onMessage: receive,
    onReconnect: () => void redis.run(READ, [key], [KEPT_MS]).then(receive),
  });

  return {
    /**
     * Tells the other replicas that a transaction changed `address` in `slot`. Ignores 0, an
     * unknown slot.
     */
    announce(address: string, slot: number): void {
      if (slot > 0) void redis?.run(ANNOUNCE, [key], [slot, KEPT_MS, `${slot} ${address}`]);
    },
  };
}
