import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "../../upstream/parse-json.ts";
import type { Redis, Script } from "../../upstream/redis.ts";
import { CollectError } from "../collect-error.ts";

/** A signed transaction as stored in Redis, with all that another replica needs to send and confirm it. */
export interface StoredTransaction {
  readonly base64: string;
  readonly signature: string;
  readonly lastValidBlockHeight: number;
}

/** The exclusive right to sign an account's next transaction, once `openTransaction` has an outcome. */
export interface Lease {
  /** A transaction that another replica signed. Sign nothing else before its outcome is known. */
  readonly openTransaction: StoredTransaction | undefined;
  /** The slot in which the account's last transaction landed, if within the last minute; else 0. */
  readonly landedSlot: number;
  /**
   * Stores a signed transaction; call this before sending it. Returns false when another replica has
   * acquired the lock in the meantime: the transaction must not be sent then.
   */
  store(transaction: StoredTransaction): Promise<boolean>;
  /** Call when nothing was signed or the outcome is known; pass the slot if the transaction landed. */
  release(landedSlot?: number): void;
}

/** A lease without a transaction expires after this time, in case its replica has died. */
const LEASE_MS = 15_000;
/**
 * A signed transaction is stored until its outcome is known, or for this long. Blockhashes do not expire while
 * the cluster is halted; the longest halt so far took most of a day.
 */
const SIGNED_MS = 7 * 24 * 3_600_000;
/** How long a confirmed transaction and its slot stay readable: slow nodes may not have seen it yet. */
const LANDED_MS = 60_000;
const POLL_MS = 100;

/**
 * KEYS: the lock; the slot of the last landed transaction. ARGV: a new token; the token of the holder this
 * replica waits for, or ""; LEASE_MS. Returns the holder's token, its transaction or "", and the slot or 0.
 *
 * A lock that is `done` is free, but a replica that waits for its holder still receives the transaction. The
 * first command is a write, so that the script fails on a read-only Redis, whose data may be stale.
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

/** KEYS: as for ACQUIRE. ARGV: the token, the slot or 0, LANDED_MS. Keeps a lock that another token holds. */
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
 * A replica acquires the account's lock with a random token, signs, and stores the signed transaction in the
 * lock before it sends it for the first time. A replica that finds the lock held waits until the lock contains
 * a transaction, then sends and confirms that transaction itself, so it does not matter whether the signer is
 * still alive. A lock without a transaction expires after 15 s; a slower signer finds another token in the lock
 * when it stores, and does not send. Once a transaction is stored, only a known outcome releases the lock. Any
 * replica that knows the outcome releases it, with the token it read there, so that it cannot release a later
 * lock.
 *
 * Without Redis, or while Redis is down, every lease is granted. The money is still safe: the same fees never
 * move twice, so two replicas that collect an account at the same time only waste one transaction fee, which
 * counts in the budget of one of them.
 */
export function createAccountLocks({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  /** Waits while another replica prepares its transaction. Undefined when Redis is down. */
  async function acquireLock(keys: string[], token: string, hasGivenUp: () => boolean) {
    let awaitedHolder = "";
    for (;;) {
      if (hasGivenUp()) throw new CollectError({ kind: "lease-not-acquired" });
      const answer = await redis?.run(ACQUIRE, keys, [token, awaitedHolder, LEASE_MS]);
      if (!answer) return undefined;
      const [holder, transaction] = answer;
      if (holder === token || transaction !== "") return answer;
      awaitedHolder = holder;
      await sleep(POLL_MS);
    }
  }

  return {
    /**
     * Acquires the lock of the account with this address; waits while another replica prepares its
     * transaction. Throws {@link CollectError} `lease-not-acquired` once `hasGivenUp` returns true, or
     * `stored-transaction-unreadable`.
     */
    async acquire(address: string, hasGivenUp: () => boolean): Promise<Lease> {
      const keys = [`collect:${feePayer}:${address}`, `landed:${feePayer}:${address}`];
      const token = randomUUID();
      const [holder, transaction, slot] = (await acquireLock(keys, token, hasGivenUp)) ?? [token, "", 0];
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
          // Only 0 forbids sending. Undefined means that Redis is down; collects continue without it.
          return (await redis?.run(STORE, keys.slice(0, 1), args)) !== 0;
        },
        release,
      };
    },
  };
}
