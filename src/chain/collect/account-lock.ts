import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "../../upstream/parse-json.ts";
import type { Redis, Script } from "../../upstream/redis.ts";
import { CollectError } from "../collect-error.ts";

/** A signed transaction as it is stored in Redis: everything another replica needs to send and follow it. */
export interface StoredTransaction {
  readonly base64: string;
  readonly signature: string;
  readonly lastValidBlockHeight: number;
}

/** The exclusive right to sign an account's next transaction, or the transaction that must end first. */
export interface Lease {
  /** A transaction that another replica has signed. Nothing else may be signed before its outcome is known. */
  readonly openTransaction: StoredTransaction | undefined;
  /** The slot in which the account's last transaction landed, if within the last minute; else 0. */
  readonly landedSlot: number;
  /**
   * Stores a signed transaction; it may be sent only after this. False when another replica has acquired
   * the lock since: then the transaction must not be sent.
   */
  store(transaction: StoredTransaction): Promise<boolean>;
  /** Call when nothing was signed, or when the outcome is known, with the slot if the transaction landed. */
  release(landedSlot?: number): void;
}

/** A lease without a transaction expires after this long, in case its replica has died. */
const LEASE_MS = 15_000;
/**
 * A signed transaction is stored until its outcome is known. Its blockhash does not age while the cluster
 * stands still, which it once did for most of a day.
 */
const SIGNED_MS = 7 * 24 * 3_600_000;
/** How long other replicas find an ended transaction and its slot: slow nodes may not have seen it yet. */
const LANDED_MS = 60_000;
const POLL_MS = 100;

/**
 * KEYS: the lock; the slot of the last landed transaction. ARGV: a new token; the token waited for, or "";
 * LEASE_MS. Returns the holder's token, its transaction or "", and the slot or 0.
 *
 * A lock that is done is free, but a replica that waited for exactly this holder still receives its
 * transaction. The first command is a write: a read-only Redis may not know yet that a lock is done.
 */
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

/** KEYS: the lock. ARGV: the token, its transaction, SIGNED_MS. Returns 1, or 0 when another token holds the lock. */
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

/** KEYS: as for ACQUIRE. ARGV: the token, the slot or 0, LANDED_MS. Leaves the lock alone when another token holds it. */
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

const STORED_TRANSACTION = z.object({
  base64: z.string(),
  signature: z.string(),
  lastValidBlockHeight: z.int(),
});

export type AccountLocks = ReturnType<typeof createAccountLocks>;

/**
 * Lets one replica at a time sign a transaction for an account.
 *
 * A replica acquires the account's lock under a random token, signs, and stores the signed transaction in
 * the lock before it sends it for the first time. A replica that finds the lock taken waits until it holds a
 * transaction, and then follows that transaction from its bytes, so it does not matter whether the signer is
 * still alive. Before it is signed the lock expires by itself after 15 s; a signer that was slower finds
 * another token in the lock when it stores, and does not send. Once a transaction is stored, only a known
 * outcome ends the lock: any replica that has seen it releases the lock, under the token it read there, so
 * that it cannot release a later one.
 *
 * Without Redis, or while it is away, every lease is granted. The chain protects the money then: a vault
 * is emptied once, whatever is sent, so two replicas that collect one account at the same moment waste one
 * fee, which comes out of the budget of one of them.
 */
export function createAccountLocks({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  /** Waits while another replica is about to sign. Undefined when Redis is away. */
  async function take(keys: string[], token: string, hasGivenUp: () => boolean) {
    let awaitedHolder = "";
    for (;;) {
      if (hasGivenUp()) throw new CollectError({ kind: "lease-not-acquired" });
      const taken = await redis?.run(ACQUIRE, keys, [token, awaitedHolder, LEASE_MS]);
      if (!taken) return undefined;
      const [holder, transaction] = taken;
      if (holder === token || transaction !== "") return taken;
      awaitedHolder = holder;
      await sleep(POLL_MS);
    }
  }

  return {
    /**
     * Acquires the lock of the account with this address; waits while another replica is about to sign.
     * Throws {@link CollectError}: `lease-not-acquired` once `hasGivenUp`, `stored-transaction-unreadable`.
     */
    async acquire(address: string, hasGivenUp: () => boolean): Promise<Lease> {
      const keys = [`collect:${feePayer}:${address}`, `landed:${feePayer}:${address}`];
      const token = randomUUID();
      const [holder, transaction, slot] = (await take(keys, token, hasGivenUp)) ?? [token, "", 0];
      let hasTransaction = holder !== token;

      const release = (landedSlot = 0) => {
        const args = [holder, landedSlot, LANDED_MS];
        // A lock without a transaction expires by itself, so losing its release is harmless.
        if (hasTransaction) redis?.runLater(RELEASE, keys, args);
        else void redis?.run(RELEASE, keys, args);
      };
      const stored = STORED_TRANSACTION.safeParse(parseJson(transaction));
      if (holder !== token && !stored.success) {
        release();
        throw new CollectError({ kind: "stored-transaction-unreadable" }, stored.error);
      }
      return {
        openTransaction: stored.data,
        landedSlot: slot,
        async store(signed) {
          hasTransaction = true;
          const args = [token, JSON.stringify(signed), SIGNED_MS];
          // Only 0 forbids sending. Undefined means that Redis is away, and collects go on without it.
          return (await redis?.run(STORE, keys.slice(0, 1), args)) !== 0;
        },
        release,
      };
    },
  };
}
