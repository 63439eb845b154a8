import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { StoredTransaction } from "../../src/chain/collect/account-lock.ts";
import type { Redis, Script } from "../../src/upstream/redis.ts";

/** The scripts of version 1, unchanged. KEYS: the lock; the slot of the last landed transaction. */
const ACQUIRE: Script<[holder: string, transaction: string, slot: number]> = {
  answer: z.tuple([z.string(), z.string(), z.int()]),
  text: `
redis.call('HSET', KEYS[1], 'asked', '1')
local token, transaction, done = unpack(redis.call('HMGET', KEYS[1], 'token', 'transaction', 'done'))
local slot = tonumber(redis.call('GET', KEYS[2])) or 0
if token and (not done or token == ARGV[2]) then return {token, transaction or '', slot} end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'token', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {ARGV[1], '', slot}
`,
};
const STORE: Script<number> = {
  answer: z.int(),
  text: `
local token = redis.call('HGET', KEYS[1], 'token')
if token and token ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'transaction', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`,
};
const RELEASE: Script<unknown> = {
  answer: z.unknown(),
  text: `
local slot, known = tonumber(ARGV[2]), tonumber(redis.call('GET', KEYS[2])) or 0
if slot > known then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
if slot == 0 then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'done', '1')
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
`,
};

/** Acquires an account's lock as a replica of version 1 does, with the same keys and arguments. */
export async function acquireAsVersion1(redis: Redis, feePayer: string, address: string) {
  const keys = [`collect:${feePayer}:${address}`, `landed:${feePayer}:${address}`];
  const token = randomUUID();
  let holder = "";
  for (;;) {
    const answer = await redis.run(ACQUIRE, keys, [token, holder, 15_000]);
    if (!answer) throw new Error("Redis is down");
    const [newHolder, transaction, landedSlot] = answer;
    holder = newHolder;
    if (holder !== token && transaction === "") {
      await sleep(100);
      continue;
    }
    return {
      openTransaction: transaction === "" ? undefined : (JSON.parse(transaction) as StoredTransaction),
      landedSlot,
      /** Returns false when another replica has acquired the lock in the meantime. */
      store: async (signed: StoredTransaction) =>
        (await redis.run(STORE, keys.slice(0, 1), [token, JSON.stringify(signed), 7 * 24 * 3_600_000])) !== 0,
      release: async (slot = 0) => redis.run(RELEASE, keys, [holder, slot, 60_000]),
    };
  }
}
