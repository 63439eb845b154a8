import { createLruCache } from "../../store/lru-cache.ts";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import type { Redis, Script } from "../../store/redis.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import { CollectError } from "../collect-error.ts";
import { untilAborted, withDeadline } from "../rpc/deadline.ts";
import { toLamports, type Lamports } from "../lamports.ts";

const STORED_TRANSACTION = z.object({
  base64: z.string(),
  signature: z.string(),
  lastValidBlockHeight: z.int(),
  /** Whether the transaction collects for several accounts. */
  isShared: z.boolean().optional(),
  /** The mints of the swept coins, each once. */
  sweptMints: z.array(z.string()).readonly().optional(),
});
/**
 * A signed transaction as stored in Redis, with all that another replica needs to send and confirm
 * it.
 */
export type StoredTransaction = Readonly<z.infer<typeof STORED_TRANSACTION>>;

const LAMPORTS = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform((text): Lamports => toLamports(BigInt(text)));
const LAST_COLLECT = z.object({
  collected: LAMPORTS,
  /** The withdrawable lamports at the address right after the collect. */
  newBalance: LAMPORTS,
  signature: z.string(),
  /** When the transaction's block was produced. Stored in ms since 1970. */
  at: z.int().transform((ms) => new Date(ms)),
});
/** What the last successful collect of an account moved. */
export type LastCollect = Readonly<z.output<typeof LAST_COLLECT>>;

/** What later collects of an address need to know about a landed transaction. */
export interface Landing {
  /** 0 if unknown. */
  readonly slot: number;
  /** What the transaction moved to the account, if anything. */
  collect?: LastCollect;
  /**
   * True starts or doubles the account's backoff. False ends the backoff. Undefined changes
   * nothing.
   */
  hasFailed?: boolean;
}

/**
 * Either the right to sign the next transaction for an address, or a transaction that another
 * collect has signed.
 */
export interface Claim {
  /**
   * Set if another collect has signed: follow this transaction, settle the claim, and take a new
   * claim.
   */
  readonly openTransaction: StoredTransaction | undefined;
  /**
   * Whether `openTransaction` is certainly older than this claim: the first read returned it, or
   * another collect of this process knows its outcome. False proves nothing, because a slow Redis
   * can store a transaction late.
   */
  readonly isEarlier: boolean;
  /** The slot in which the address's last transaction landed; 0 if unknown. */
  readonly landedSlot: number;
  /** Returns the account's last known collect; undefined if there was none in the last hour. */
  lastCollect(): LastCollect | undefined;
  /**
   * Returns for how many more ms the account backs off after failures on the chain; 0 without a
   * backoff.
   */
  backsOffMs(): number;
  /**
   * Call before sending. Returns false if another replica has taken the claim: do not send then.
   */
  store(transaction: StoredTransaction): Promise<boolean>;
  /**
   * Frees the claim of an unsent transaction, or returns false if another replica may have read the
   * transaction.
   */
  withdraw(): Promise<boolean>;
  /**
   * Frees the claim. Call `settle` when nothing was signed, or after any outcome, also `unknown`.
   * If the transaction landed, pass `landing`. A second call can add what the first did not know.
   */
  settle(landing?: Landing): void;
}

/** A collect of this process that holds a claim. */
interface Holder {
  transaction: StoredTransaction | undefined;
  readonly settled: PromiseWithResolvers<unknown>;
}

/**
 * Called while another collect holds the claim. `transaction` returns that collect's transaction,
 * once known.
 */
export type OnWait = (transaction: () => StoredTransaction | undefined) => void;

/**
 * A claim without a transaction expires this long after its last renewal, in case its holder has
 * died.
 */
const LEASE_MS = 15_000;
/** The claim survives one failed renewal. */
const RENEW_MS = LEASE_MS / 3;
/**
 * A signed transaction is stored until its claim is settled, or for this long. Blockhashes do not
 * expire while the cluster is halted; the longest halt so far took most of a day.
 */
const SIGNED_MS = 7 * 24 * 3_600_000;
/**
 * How long a landed transaction and its slot stay readable: slow nodes may not have seen the
 * transaction yet.
 */
const LANDED_MS = 60_000;
const POLL_MS = 100;
/** Stands for the slot of a transaction that did not land. */
const NOT_LANDED = -1;
/**
 * A collect is kept this long after its block's time, and a backoff this long after its end, to
 * double the next.
 */
const REMEMBERED_MS = 3_600_000;
const FIRST_BACKOFF_MS = 60_000;
const MAX_BACKOFF_MS = 3_600_000;
/**
 * An entry takes about 500 bytes. With Redis, entries matter only for collects that ended while
 * Redis was down.
 */
const MAX_COLLECTS = 10_000;
/** Evicting an entry takes this many failed transactions, and each uses up fee budget. */
const MAX_BACKOFFS = 50_000;

/** KEYS of all scripts: [1] the claim; [2] the address's last slot, collect and backoff. */
const keysOf = (feePayer: string, address: string) => [
  redisKeys.claim(feePayer, address),
  redisKeys.known(feePayer, address),
];

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * ARGV: a new token; the awaited holder's token, or ""; LEASE_MS. Returns: the holder's token; the
 * holder's transaction, or ""; the last slot, or 0; the last collect, or ""; the last backoff in
 * ms; the ms until it ends.
 *
 * A time further ahead than its longest life was written while Redis's clock was ahead: it is
 * shortened to that life. A claim without a transaction lives for LEASE_MS, a backoff for its
 * duration.
 *
 * A claim that is `done` is free, but a replica that was waiting for its holder still receives the
 * transaction. Each branch writes, so that the script fails on a read-only Redis, whose data may be
 * stale.
 */
const TAKE: Script<
  [
    holder: string,
    transaction: string,
    slot: number,
    collect: string,
    backoffMs: number,
    leftMs: number,
  ]
> = {
  answer: z.tuple([z.string(), z.string(), z.int(), z.string(), z.int(), z.int()]),
  text: `${NOW}
local slot, collect, backoff, ends = unpack(redis.call('HMGET', KEYS[2], 'slot', 'collect', 'backoff', 'ends'))
collect = collect or ''
backoff = tonumber(backoff) or 0
local left = math.max(0, (tonumber(ends) or 0) - now)
if left > backoff then
  left = backoff
  redis.call('HSET', KEYS[2], 'ends', now + left)
end
local function answer(token, transaction)
  return {token, transaction or '', tonumber(slot) or 0, collect, backoff, left}
end
local token, transaction, done = unpack(redis.call('HMGET', KEYS[1], 'token', 'transaction', 'done'))
if token and (not done or (transaction and token == ARGV[2])) then
  redis.call('HSET', KEYS[1], 'asked', '1')
  if not transaction and redis.call('PTTL', KEYS[1]) > tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
  return answer(token, transaction)
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
redis.call('HDEL', KEYS[1], 'transaction', 'done', 'asked')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return answer(ARGV[1])
`,
};

/**
 * ARGV: the token; the transaction to store, or "" to renew a claim that has no transaction; the
 * time to live in ms. Returns 0 if another token is in the claim, else 1.
 */
const STORE: Script<number> = {
  answer: z.int(),
  text: `
local token, stored = unpack(redis.call('HMGET', KEYS[1], 'token', 'transaction'))
if token and token ~= ARGV[1] then return 0 end
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'token', ARGV[1], 'transaction', ARGV[2]) end
if ARGV[2] ~= '' or not stored then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
`,
};

/**
 * ARGV: the token. Returns 0 if another replica has read this token's claim; else deletes the
 * claim, and returns 1.
 */
const WITHDRAW: Script<number> = {
  answer: z.int(),
  text: `
local token, asked = unpack(redis.call('HMGET', KEYS[1], 'token', 'asked'))
if token == ARGV[1] and asked then return 0 end
if token == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`,
};

/**
 * ARGV: the token; the slot, or NOT_LANDED; LANDED_MS; the collect, or ""; the time of the
 * collect's block, in ms; the collect's time to live, in ms; the new backoff in ms, 0 to end the
 * backoff, or "" to keep it; REMEMBERED_MS. Leaves a claim with another token unchanged, and a
 * newer slot or collect too, unless that collect's time lies ahead, because a wrong clock wrote it.
 */
const SETTLE: Script<unknown> = {
  answer: z.unknown(),
  text: `${NOW}
local function remember(ms, ...)
  redis.call('HSET', KEYS[2], ...)
  if redis.call('PTTL', KEYS[2]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[2], ms) end
end
local slot, at = unpack(redis.call('HMGET', KEYS[2], 'slot', 'at'))
if tonumber(at) and tonumber(at) > now + tonumber(ARGV[3]) then at = 0 end
if tonumber(ARGV[2]) > (tonumber(slot) or 0) then remember(ARGV[3], 'slot', ARGV[2]) end
if ARGV[4] ~= '' and tonumber(ARGV[5]) >= (tonumber(at) or 0) then
  remember(ARGV[6], 'collect', ARGV[4], 'at', ARGV[5])
end
if tonumber(ARGV[2]) > 0 and tonumber(ARGV[2]) < (tonumber(slot) or 0) then ARGV[7] = '' end
if ARGV[7] == '0' then redis.call('HDEL', KEYS[2], 'backoff', 'ends')
elseif ARGV[7] ~= '' then remember(ARGV[7] + ARGV[8], 'backoff', ARGV[7], 'ends', now + ARGV[7]) end
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 1 end
if tonumber(ARGV[2]) == ${NOT_LANDED} then redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'done', '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
`,
};

const toText = ({ collected, newBalance, signature, at }: LastCollect): string =>
  JSON.stringify({
    collected: String(collected),
    newBalance: String(newBalance),
    signature,
    at: at.getTime(),
  });
const newestOf = (a: LastCollect | undefined, b: LastCollect | undefined) =>
  a && !(b && b.at > a.at) ? a : b;
/** Returns for how many more ms to keep a collect; 0 or less once it is too old. */
const timeToLive = ({ at }: LastCollect) => at.getTime() + REMEMBERED_MS - Date.now();

export type Claims = ReturnType<typeof createClaims>;

/**
 * Lets one collect at a time sign a transaction for an address: an account's, or a sharing
 * config's, because one distribution pays all its shareholders. Remembers the address's last slot,
 * last collect and backoff.
 *
 * A collect takes the claim with a random token, signs, and stores the transaction in the claim
 * before the first send. A replica that finds the claim held waits for the transaction, then sends
 * and confirms the transaction itself: the signer may be dead. The holder renews a claim without a
 * transaction every 5 s; 15 s after the last renewal the claim expires. A signer that has lost the
 * claim finds another token when it stores, and does not send. Once a transaction is sent, only its
 * outcome (landed, expired or unknown) settles the claim. Any replica may settle the claim, but
 * only with the token that it read, so that it never frees a later claim. Within a process,
 * collects wait for the holder.
 *
 * Without Redis, or while Redis is down, a claim binds only this process. The money is still safe,
 * because fees cannot move twice: two replicas that collect an account at the same time only waste
 * one transaction fee.
 */
export function createClaims({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  /** The claims that collects of this process hold, by address. */
  const holders = new Map<string, Holder>();
  const collects = createLruCache<string, LastCollect>(MAX_COLLECTS);
  const backoffs = createLruCache<string, { readonly ms: number; readonly endsAt: number }>(
    MAX_BACKOFFS,
  );

  /** Waits while another replica prepares a transaction. Returns undefined when Redis is down. */
  async function takeInRedis(keys: string[], token: string, endsAt: number, onWait: OnWait) {
    let awaitedHolder = "";
    for (;;) {
      const answer = await redis?.run(TAKE, keys, [token, awaitedHolder, LEASE_MS]);
      if (!answer) return undefined;
      const [holder, transaction] = answer;
      if (holder === token || transaction !== "")
        return { answer, isEarlier: awaitedHolder === "" };
      if (performance.now() > endsAt) throw new CollectError({ kind: "lease-not-acquired" });
      if (awaitedHolder === "") onWait(() => undefined);
      awaitedHolder = holder;
      await sleep(POLL_MS);
    }
  }

  function rememberCollect(address: string, collect: LastCollect): void {
    const newest = newestOf(collect, collects.get(address))!;
    collects.set(address, newest, { ttl: Math.max(1, timeToLive(newest)) });
  }

  function rememberBackoff(address: string, ms: number): void {
    if (ms === 0) backoffs.delete(address);
    else backoffs.set(address, { ms, endsAt: performance.now() + ms }, { ttl: ms + REMEMBERED_MS });
  }

  function newestCollect(address: string, text: string): LastCollect | undefined {
    const newest = newestOf(LAST_COLLECT.safeParse(parseJson(text)).data, collects.get(address));
    return newest && timeToLive(newest) > 0 ? newest : undefined;
  }

  return {
    /**
     * Takes the claim of this address. If another collect must finish first, calls `onWait`, then
     * waits; if that collect has signed nothing, until `endsAt` (`performance.now()` time) at the
     * latest. Throws {@link CollectError} `distribution-in-flight`, `lease-not-acquired` or
     * `stored-transaction-unreadable`.
     */
    async take(address: string, endsAt: number, onWait: OnWait = () => undefined): Promise<Claim> {
      for (let other; (other = holders.get(address));) {
        const holder = other;
        onWait(() => holder.transaction);
        await waitFor(holder, endsAt);
        if (holder.transaction) return toFollow(holder.transaction);
      }
      const held: Holder = { transaction: undefined, settled: Promise.withResolvers() };
      holders.set(address, held);
      const free = () => {
        if (holders.get(address) === held) holders.delete(address);
        held.settled.resolve(undefined);
      };
      const keys = keysOf(feePayer, address);
      const token = randomUUID();
      const taken = await takeInRedis(keys, token, endsAt, onWait).catch((error: unknown) => {
        free();
        throw error;
      });
      const { ms = 0, endsAt: backsOffUntil = 0 } = backoffs.get(address) ?? {};
      const left = Math.max(0, backsOffUntil - performance.now());
      const ofThisProcess = [token, "", 0, "", ms, left] as const;
      const [holder, transaction, landedSlot, collect, backoffMs, leftMs] =
        taken?.answer ?? ofThisProcess;
      const takenAt = performance.now();
      let hasTransaction = holder !== token;
      if (hasTransaction) free();
      const renew = () => void redis?.run(STORE, keys, [token, "", LEASE_MS]);
      const renewal = hasTransaction ? undefined : setInterval(renew, RENEW_MS).unref();

      function settle(landing?: Landing): void {
        clearInterval(renewal);
        const { slot = NOT_LANDED, collect, hasFailed } = landing ?? {};
        let backoff: number | "" = "";
        // Double the value read with the claim: all replicas that see the same failure then write
        // the same backoff.
        if (hasFailed)
          backoff = backoffMs > 0 ? Math.min(2 * backoffMs, MAX_BACKOFF_MS) : FIRST_BACKOFF_MS;
        else if (hasFailed === false) backoff = 0;
        if (backoff !== "") rememberBackoff(address, backoff);
        if (collect) rememberCollect(address, collect);
        const ttl = collect ? timeToLive(collect) : 0;
        const stored = ttl > 0 && collect ? toText(collect) : "";
        const at = collect?.at.getTime() ?? 0;
        const args = [holder, slot, LANDED_MS, stored, at, ttl, backoff, REMEMBERED_MS];
        // Without a transaction, the script is needed only until the claim expires and the collect
        // is too old.
        redis?.runLater(SETTLE, keys, args, hasTransaction ? Infinity : Math.max(LEASE_MS, ttl));
        free();
      }
      const open = STORED_TRANSACTION.safeParse(parseJson(transaction));
      if (holder !== token && !open.success) {
        settle();
        throw new CollectError({ kind: "stored-transaction-unreadable" }, open.error);
      }
      return {
        openTransaction: open.data,
        isEarlier: taken?.isEarlier ?? false,
        landedSlot,
        lastCollect: () => newestCollect(address, collect),
        backsOffMs: () => Math.max(0, takenAt + leftMs - performance.now()),
        async store(signed) {
          clearInterval(renewal);
          hasTransaction = true;
          const args = [token, JSON.stringify(signed), SIGNED_MS];
          const answer = await redis?.run(STORE, keys, args);
          // Redis is down: collects go on without Redis, and the transaction is stored once Redis
          // is back.
          if (answer === undefined) redis?.runLater(STORE, keys, args);
          if (answer !== 0) held.transaction = signed;
          return answer !== 0;
        },
        async withdraw() {
          const isWithdrawn = (await redis?.run(WITHDRAW, keys, [token])) === 1;
          if (isWithdrawn) {
            held.transaction = undefined;
            free();
          }
          return isWithdrawn;
        },
        settle,
      };
    },
  };
}

/**
 * Stores a transaction in all claims. `held`: a list of claims for each account. Returns for each
 * account whether its collect must send the transaction. If a claim is lost to another replica,
 * withdraws the transaction from the other claims. A collect must then send only if one of its
 * withdrawals fails: another replica may have the transaction.
 */
export async function storeUnderAll(
  held: readonly (readonly Claim[])[],
  transaction: StoredTransaction,
): Promise<boolean[]> {
  const areStored = await Promise.all(
    held.map((ofAccount) => Promise.all(ofAccount.map((claim) => claim.store(transaction)))),
  );
  if (!areStored.flat().includes(false)) return held.map(() => true);
  const areFree = await Promise.all(
    held.map((ofAccount, i) =>
      Promise.all(ofAccount.map(async (claim, j) => !areStored[i]![j] || claim.withdraw())),
    ),
  );
  return areFree.map((ofAccount) => ofAccount.includes(false));
}

async function waitFor(holder: Holder, endsAt: number): Promise<void> {
  const leftMs = Math.max(0, endsAt - performance.now());
  await withDeadline(leftMs, (deadline) => untilAborted(holder.settled.promise, deadline)).catch(
    () => {
      if (!holder.transaction) throw new CollectError({ kind: "distribution-in-flight" });
      return holder.settled.promise;
    },
  );
}

/** Returns a claim with a transaction whose outcome another collect of this process has found. */
function toFollow(openTransaction: StoredTransaction): Claim {
  return {
    openTransaction,
    isEarlier: true,
    landedSlot: 0,
    lastCollect: () => undefined,
    backsOffMs: () => 0,
    store: () => Promise.resolve(false),
    withdraw: () => Promise.resolve(false),
    settle: () => undefined,
  };
}
