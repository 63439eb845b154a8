import { z } from "zod";
import type { Redis, Script } from "../upstream/redis.ts";

/** Longer than a provider's node lags behind. */
const KEPT_MS = 60_000;

/**
 * KEYS: the newest landed slot, and the channel of the same name. ARGV: a slot, KEPT_MS. `pcall`, so that an ACL user
 * without the channel can still write the key.
 */
const ANNOUNCE: Script<unknown> = {
  answer: z.unknown(),
  text: `
local newest = tonumber(redis.call('GET', KEYS[1])) or 0
if tonumber(ARGV[1]) > newest then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
redis.pcall('PUBLISH', KEYS[1], ARGV[1])
return true
`,
};

/** KEYS: as for ANNOUNCE. */
const READ: Script<string | null> = {
  answer: z.string().nullable(),
  text: "return redis.call('GET', KEYS[1])",
};

/**
 * Tells all replicas with this fee payer in which slots its transactions landed, so that after a collect at one
 * replica no other shows the state before it. Slots are pushed, so lookups never wait for them. A replica that may
 * have missed a message reads the newest slot, which Redis keeps for a minute.
 */
export function createLandedSlots({
  feePayer,
  redis,
  requireSlot,
}: {
  feePayer: string;
  redis: Redis | undefined;
  /** Called with each slot that a replica announces. */
  requireSlot: (slot: number) => void;
}) {
  const key = `v2:landed-slot:${feePayer}`;

  function receive(text: string | null | undefined): void {
    const slot = Number(text);
    if (text && Number.isSafeInteger(slot) && slot >= 0) requireSlot(slot);
  }

  redis?.subscribe(key, {
    onMessage: receive,
    onReconnect: () => void redis.run(READ, [key], []).then(receive),
  });

  return {
    /** Tells the other replicas that a transaction landed in `slot`. */
    announce(slot: number): void {
      if (slot > 0) void redis?.run(ANNOUNCE, [key], [slot, KEPT_MS]);
    },
  };
}
