import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "../../../upstream/parse-json.ts";
import type { Redis, Script } from "../../../store/redis.ts";
import { CollectError } from "../../collect-error.ts";

/** A signed transaction as stored in Redis, with all that another replica needs to send and confirm it. */
export interface StoredTransaction {
  readonly base64: string;
  readonly signature: string;
  readonly lastValidBlockHeight: number;
  /** Whether it collects several accounts. */
  readonly isShared?: boolean | undefined;
  /** The mints of the coins that it sweeps; from replicas of older releases with repeats and nulls. */
  readonly sweptMints?: readonly (string | null)[] | undefined;
}

/** An account's lock: the right to sign its next transaction, or else a transaction to follow. */
export interface Lease {
  /**
   * A transaction that another replica signed. A lease with one never gives the right to sign: find out its
   * outcome, release the lease, and acquire the lock again.
   */
  readonly openTransaction: StoredTransaction | undefined;
  /** Whether `openTransaction` was in the lock at once. If not, it may still have landed long ago: Redis stores late. */
  readonly isEarlier: boolean;
  /** False while Redis is down: then another replica may hold the lock. */
  readonly isInRedis: boolean;
  /** The slot in which the account's last transaction landed, if within the last minute; else 0. */
  readonly landedSlot: number;
  /**
   * Stores a signed transaction; call this before sending it. Returns false when another replica has
   * acquired the lock in the meantime: the transaction must not be sent then.
   */
  store(transaction: StoredTransaction): Promise<boolean>;
  /**
   * Takes back a stored transaction that was not sent, and releases the lock. Returns false, and does nothing, if
   * another replica may have received the transaction.
   */
  withdraw(): Promise<boolean>;
  /**
   * Call when nothing was signed, or with any outcome, also `unknown`. If the transaction landed, pass its slot, or 0
   * if that is unknown.
   */
  release(landedSlot?: number): void;
}

/** A lock without a transaction expires this long after its last renewal, in case its holder has died. */
const LEASE_MS = 15_000;
/** The lock survives one failed renewal. */
const RENEW_MS = LEASE_MS / 3;
/**
 * A signed transaction is stored until its lock is released, or for this long. Blockhashes do not expire while
 * the cluster is halted; the longest halt so far took most of a day.
 */
const SIGNED_MS = 7 * 24 * 3_600_000;
/** How long a confirmed transaction and its slot stay readable: slow nodes may not have seen it yet. */
const LANDED_MS = 60_000;
const POLL_MS = 100;
/** Stands for the slot of a transaction that did not land. */
const NOT_LANDED = -1;

/** KEYS of all scripts: the lock, and the slot of the last landed transaction. */
const keysOf = (id: string) => [`v2:collect:{${id}}`, `v2:landed:{${id}}`];

/**
 * ARGV: a new token; the token of the holder this replica waits for, or ""; LEASE_MS. Returns the holder's token,
 * its transaction or "", and the slot or 0.
 *
 * A lock that is `done` is free, but a replica that waits for its holder still receives the transaction. Each
 * branch writes, so that the script fails on a read-only Redis, whose data may be stale.
 */
const ACQUIRE: Script<[holder: string, transaction: string, slot: number]> = {
  answer: z.tuple([z.string(), z.string(), z.int()]),
  text: `
local slot = tonumber(redis.call('GET', KEYS[2])) or 0
local token, transaction, done = unpack(redis.call('HMGET', KEYS[1], 'token', 'transaction', 'done'))
if token and (not done or token == ARGV[2]) then
  redis.call('HSET', KEYS[1], 'asked', '1')
  return {token, transaction or '', slot}
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
redis.call('HDEL', KEYS[1], 'transaction', 'done', 'asked')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {ARGV[1], '', slot}
`,
};

/** ARGV: the token, LEASE_MS. Renews the lock of this token, unless it has a transaction. */
const RENEW: Script<unknown> = {
  answer: z.unknown(),
  text: `
local token, transaction = unpack(redis.call('HMGET', KEYS[1], 'token', 'transaction'))
if token == ARGV[1] and not transaction then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
`,
};

/** ARGV: the token, its transaction, SIGNED_MS. Returns 1, or 0 when another token is in the lock. */
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

/** ARGV: the token. Deletes a lock that no other replica has asked for; returns 1, or 0 if one has. */
const WITHDRAW: Script<number> = {
  answer: z.int(),
  text: `
local token, asked = unpack(redis.call('HMGET', KEYS[1], 'token', 'asked'))
if token == ARGV[1] and asked then return 0 end
if token == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`,
};

/** ARGV: the token, the slot or NOT_LANDED, LANDED_MS. Keeps a lock that another token holds. */
const RELEASE: Script<unknown> = {
  answer: z.unknown(),
  text: `
local slot, known = tonumber(ARGV[2]), tonumber(redis.call('GET', KEYS[2])) or 0
if slot > known then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
if slot == ${NOT_LANDED} then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'done', '1')
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
`,
};

const STORED_TRANSACTION = z.object({
  base64: z.string(),
  signature: z.string(),
  lastValidBlockHeight: z.int(),
  isShared: z.boolean().optional(),
  sweptMints: z.array(z.string().nullable()).optional(),
});

export type AccountLocks = ReturnType<typeof createAccountLocks>;

/**
 * Lets one replica at a time sign a transaction for an account.
 *
 * A replica acquires the account's lock with a random token, signs, and stores the signed transaction in the
 * lock before it sends it for the first time. A replica that finds the lock held waits until the lock contains
 * a transaction, then sends and confirms that transaction itself, so it does not matter whether the signer is
 * still alive. The holder renews a lock without a transaction every 5 s; 15 s after the last renewal it expires.
 * A signer that lost it finds another token in the lock when it stores, and does not send. Once a transaction is
 * sent, only its outcome (landed, expired or unknown) releases the lock. Any replica that has the outcome releases
 * it, with the token it read there, so that it cannot release a later lock.
 *
 * Without Redis, or while Redis is down, every lease is granted. The money is still safe: the same fees never
 * move twice, so two replicas that collect an account at the same time only waste one transaction fee, which
 * counts in the budget of one of them.
 */
export function createAccountLocks({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  /** Waits while another replica prepares its transaction. Undefined when Redis is down. */
  async function acquireLock(keys: string[], token: string, endsAt: number, onWait: () => void) {
    let awaitedHolder = "";
    for (;;) {
      const answer = await redis?.run(ACQUIRE, keys, [token, awaitedHolder, LEASE_MS]);
      if (!answer) return undefined;
      const [holder, transaction, landedSlot] = answer;
      if (holder === token || transaction !== "")
        return { holder, transaction, landedSlot, isEarlier: awaitedHolder === "" };
      if (performance.now() > endsAt) throw new CollectError({ kind: "lease-not-acquired" });
      if (awaitedHolder === "") onWait();
      awaitedHolder = holder;
      await sleep(POLL_MS);
    }
  }

  return {
    /**
     * Acquires the lock of the account with this address; waits while another replica prepares its
     * transaction, and then calls `onWait` once. Throws {@link CollectError} `lease-not-acquired` at `endsAt`, a
     * `performance.now()` time, or `stored-transaction-unreadable`.
     */
    async acquire(address: string, endsAt: number, onWait: () => void = () => undefined): Promise<Lease> {
      const keys = keysOf(`${feePayer}:${address}`);
      const token = randomUUID();
      const granted = { holder: token, transaction: "", landedSlot: 0, isEarlier: false };
      const answer = await acquireLock(keys, token, endsAt, onWait);
      const { holder, transaction, landedSlot, isEarlier } = answer ?? granted;
      let hasTransaction = holder !== token;
      const renew = () => void redis?.run(RENEW, keys, [token, LEASE_MS]);
      const renewal = hasTransaction ? undefined : setInterval(renew, RENEW_MS).unref();

      const release = (slot = NOT_LANDED) => {
        clearInterval(renewal);
        const args = [holder, slot, LANDED_MS];
        if (hasTransaction) redis?.runLater(RELEASE, keys, args);
        // Until a lock without a transaction expires by itself, its release spares the next collect the wait.
        else redis?.runLaterIfSoon(LEASE_MS, RELEASE, keys, args);
      };
      const stored = STORED_TRANSACTION.safeParse(parseJson(transaction));
      if (holder !== token && !stored.success) {
        release();
        throw new CollectError({ kind: "stored-transaction-unreadable" }, stored.error);
      }
      return {
        openTransaction: stored.data,
        isEarlier,
        isInRedis: answer !== undefined,
        landedSlot,
        async store(signed) {
          clearInterval(renewal);
          hasTransaction = true;
          const args = [token, JSON.stringify(signed), SIGNED_MS];
          // Only 0 forbids sending. Undefined means that Redis is down; collects continue without it.
          return (await redis?.run(STORE, keys, args)) !== 0;
        },
        async withdraw() {
          return (await redis?.run(WITHDRAW, keys, [token])) === 1;
        },
        release,
      };
    },
  };
}
