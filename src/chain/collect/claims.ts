import { randomInt } from "node:crypto";
import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import { createLruCache } from "../../store/lru-cache.ts";
import type { Redis } from "../../store/redis.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import { script } from "../../store/script.ts";
import { CollectError } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";

/**
 * A claim without a transaction expires this long after its last renewal, in case its holder has
 * died.
 */
const LEASE_MS = 15_000;
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
/** A collect is shown this long after its block's time. */
const REMEMBERED_MS = 3_600_000;
/** For how long a replica that waits for a claim is next, after it last asked. */
const WAIT_MS = 1_000;
/** How many other collects of the account an answer lists. */
export const MAX_LISTED = 20;
/** How many collects of an account are kept: an answer does not list its own. */
const MAX_COLLECTS = MAX_LISTED + 1;
/** Stands for the slot of a transaction that did not land. */
const NOT_LANDED = -1;

/**
 * What the script `TAKE` returns. Of the scripts' keys, `claim` holds the token and the transaction
 * of the collect that has the claim, and the token of the replica that is next; `known` holds the
 * address's last slot and collect, and how many transactions it has had.
 */
const TAKEN = z.object({
  token: z.string(),
  transaction: z.string(),
  slot: z.int(),
  count: z.int(),
  pending: z.string(),
});
type Taken = z.output<typeof TAKEN>;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Keeps fields of `known` for at least this long. */
const REMEMBER = `
local function remember(ms, ...)
  redis.call('HSET', known, ...)
  if redis.call('PTTL', known) < tonumber(ms) then redis.call('PEXPIRE', known, ms) end
end`;

/**
 * `newToken`: of the collect that takes the claim, or "" to look only. `awaitedToken`: of the
 * collect that this one waits for, or "". Returns the holder's `token` and `transaction`, if any;
 * and what is known: the `slot` of the last landing, how many transactions (`count`) were stored,
 * and the distribution that was signed for the account and has no outcome
 * (`pending`).
 *
 * A claim without a transaction whose time is further ahead than LEASE_MS was written while Redis's
 * clock was ahead: it is shortened.
 *
 * A claim that is `done` is free, but a replica that was waiting for its holder still receives the
 * transaction. Of the replicas that wait, the one noted in `waiting` is next. Each branch that
 * takes or finds a claim writes, so that the script fails on a read-only Redis, whose data may be
 * stale.
 */
export const TAKE = script({
  keys: ["claim", "known"],
  args: ["newToken", "awaitedToken"],
  answer: z.string().transform(parseJson).pipe(TAKEN),
  text: `${NOW}
local slot, count, pending = unpack(redis.call('HMGET', known, 'slot', 'count', 'pending'))
local function answer(token, transaction)
  return cjson.encode({token = token or '', transaction = transaction or '',
    slot = tonumber(slot) or 0, count = tonumber(count) or 0,
    pending = pending or ''})
end
local token, transaction, done, waiting, waits =
  unpack(redis.call('HMGET', claim, 'token', 'transaction', 'done', 'waiting', 'waits'))
waits = (tonumber(waits) or 0) - now
local isNext = not waiting or waiting == newToken or waits < 0 or waits > ${WAIT_MS}
local isHeld = token and (not done or (transaction and token == awaitedToken))
if isHeld then
  redis.call('HSET', claim, 'asked', '1')
  if not transaction and redis.call('PTTL', claim) > ${LEASE_MS} then
    redis.call('PEXPIRE', claim, ${LEASE_MS})
  end
end
if newToken == '' then
  if isHeld then return answer(token, transaction) end
  return answer()
end
if isHeld or not isNext then
  if isNext then redis.call('HSET', claim, 'waiting', newToken, 'waits', now + ${WAIT_MS}) end
  if isHeld then return answer(token, transaction) end
  return answer(waiting)
end
redis.call('HSET', claim, 'token', newToken)
redis.call('HDEL', claim, 'transaction', 'done', 'asked', 'waiting', 'waits')
redis.call('PEXPIRE', claim, ${LEASE_MS})
return answer(newToken)
`,
});

/**
 * Stores a transaction, and counts it; with the transaction "", renews a claim that has none.
 * Returns 0 if another token is in the claim, else 1.
 */
const STORE = script({
  keys: ["claim", "known"],
  args: ["token", "transaction"],
  answer: z.int(),
  text: `${REMEMBER}
local holder, stored = unpack(redis.call('HMGET', claim, 'token', 'transaction'))
if holder and holder ~= token then return 0 end
if transaction == '' then
  if not stored then redis.call('PEXPIRE', claim, ${LEASE_MS}) end
  return 1
end
redis.call('HSET', claim, 'token', token, 'transaction', transaction)
redis.call('PEXPIRE', claim, ${SIGNED_MS})
if transaction ~= stored then
  local count = tonumber(redis.call('HGET', known, 'count')) or 0
  remember(${REMEMBERED_MS}, 'count', count + 1)
end
return 1
`,
});

/** Keeps a distribution that was signed for an account, until its outcome is known. */
const KEEP_PENDING = script({
  keys: ["known"],
  args: ["transaction"],
  answer: z.int(),
  text: `${REMEMBER}
remember(${REMEMBERED_MS}, 'pending', transaction)
return 1
`,
});

/**
 * Frees the claim. `slot`: or NOT_LANDED. Leaves a claim with another token unchanged, and a newer
 * slot too.
 */
const SETTLE = script({
  keys: ["claim", "known"],
  args: ["token", "slot"],
  answer: z.unknown(),
  text: `${REMEMBER}
local lastSlot = tonumber(redis.call('HGET', known, 'slot')) or 0
if tonumber(slot) > lastSlot then remember(${LANDED_MS}, 'slot', slot) end
local holder, waiting, waits =
  unpack(redis.call('HMGET', claim, 'token', 'waiting', 'waits'))
if holder ~= token then return 1 end
if tonumber(slot) ~= ${NOT_LANDED} then
  redis.call('HSET', claim, 'done', '1')
  redis.call('PEXPIRE', claim, ${LANDED_MS})
  return 1
end
redis.call('DEL', claim)
if waiting then
  redis.call('HSET', claim, 'waiting', waiting, 'waits', waits)
  redis.call('PEXPIRE', claim, ${WAIT_MS})
end
return 1
`,
});

/** Returns the last collect and the newest ones, each or "". */
const READ_COLLECTS = script({
  keys: ["known"],
  answer: z.array(z.string().transform(parseJson)).transform((values) => values.flat()),
  text: `
local collect, collects = unpack(redis.call('HMGET', known, 'collect', 'collects'))
return {collect or '', collects or ''}
`,
});

/**
 * Keeps what a successful transaction moved to an account, and ends `signature` as the pending
 * distribution. `collect`: or "". `collectAt`: the time of the collect's block, in ms. Leaves a
 * newer last collect unchanged, unless its time lies ahead, because a wrong clock wrote it.
 *
 * `collects`: the newest first, each signature once. Replicas of version 0.2 write only the last
 * collect, so it joins the others before it is replaced.
 */
const KEEP_COLLECT = script({
  keys: ["known"],
  args: ["signature", "collect", "collectAt"],
  answer: z.unknown(),
  text: `${NOW}${REMEMBER}
local lastAt, last, collects, pending =
  unpack(redis.call('HMGET', known, 'at', 'collect', 'collects', 'pending'))
local function decode(text)
  local isJson, value = pcall(cjson.decode, text or '')
  return isJson and type(value) == 'table' and value or {}
end
local kept, signatures = {}, {}
local function keep(each)
  if type(each) ~= 'table' or type(each.at) ~= 'number' or type(each.signature) ~= 'string' then
    return
  end
  if each.at < now - ${REMEMBERED_MS} or signatures[each.signature] then return end
  signatures[each.signature] = true
  local i = 1
  while kept[i] and kept[i].at > each.at do i = i + 1 end
  table.insert(kept, i, each)
  kept[${MAX_COLLECTS + 1}] = nil
end
if collect ~= '' then
  local older = decode(collects)
  for i = #older, 1, -1 do keep(older[i]) end
  keep(decode(last))
  keep(decode(collect))
  if #kept > 0 then remember(${REMEMBERED_MS}, 'collects', cjson.encode(kept)) end
end
lastAt = tonumber(lastAt) or 0
if lastAt > now + ${LANDED_MS} then lastAt = 0 end
if collect ~= '' and tonumber(collectAt) >= lastAt then
  remember(${REMEMBERED_MS}, 'collect', collect, 'at', collectAt)
end
if pending and string.find(pending, signature, 1, true) then redis.call('HDEL', known, 'pending') end
return 1
`,
});

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
const readTransaction = (text: string) => STORED_TRANSACTION.safeParse(parseJson(text));

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

/** The claim survives one failed renewal. */
const RENEW_MS = LEASE_MS / 3;
/** Two replicas that sign while Redis is down hardly count alike. */
const MAX_RANDOM_COUNT = 1_000;
/**
 * A collect takes about 500 bytes. With Redis, they matter only for collects that ended while Redis
 * was down.
 */
const MAX_LOCAL_COLLECTS = 10_000;

const toText = ({ collected: collectedAmount, newBalance, signature, at }: LastCollect): string =>
  JSON.stringify({
    collected: String(collectedAmount),
    newBalance: String(newBalance),
    signature,
    at: at.getTime(),
  });

/** Returns the collects of the last hour that are kept: the newest first, each signature once. */
function newestOf(collects: readonly (LastCollect | undefined)[]): LastCollect[] {
  const newest = collects
    .flatMap((each) => (each && Date.now() - each.at.getTime() < REMEMBERED_MS ? each : []))
    .toSorted((a, b) => b.at.getTime() - a.at.getTime());
  const bySignature = new Map(newest.map((each) => [each.signature, each]));
  return [...bySignature.values()].slice(0, MAX_COLLECTS);
}

export type Claims = ReturnType<typeof createClaims>;
export type Claim = Awaited<ReturnType<Claims["look"]>>;

/**
 * Lets one collect at a time sign a transaction for a unit. A unit's address is an account's, or a
 * sharing config's, because one distribution pays all its shareholders. Within this process, a unit
 * has one collect at a time; claims keep other replicas out. No collect takes a claim while it
 * holds another. Also remembers the address's last slot and last collect.
 *
 * A collect takes the claim with a random token, signs, and stores the transaction in the claim
 * before the first send. A replica that finds the claim held waits for the transaction, then sends
 * and confirms the transaction itself: the signer may be dead. The first replica that waits is next
 * when the claim is free. The holder renews a claim without a transaction every 5 s; 15 s after the
 * last renewal the claim expires. A signer that has lost the claim finds another token when it
 * stores, and does not send. Once a transaction is sent, only its outcome (landed, expired or
 * unknown) settles the claim. Any replica may settle the claim, but only with the token that it
 * read, so that it never frees a later claim.
 *
 * Without Redis, or while Redis is down, a claim binds only this process. The money is still safe,
 * because fees cannot move twice: two replicas that collect an account at the same time only waste
 * one transaction fee.
 */
export function createClaims({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  const collects = createLruCache<string, readonly LastCollect[]>(MAX_LOCAL_COLLECTS, {
    sizeCalculation: ({ length }) => length,
  });
  const keysOf = (address: string) => ({
    claim: redisKeys.claim(feePayer, address),
    known: redisKeys.known(feePayer, address),
  });

  /**
   * `token`: of the collect that takes the claim; "" to look only.
   */
  function toClaim(address: string, token: string, answer: Taken & { isGuess?: boolean }) {
    const keys = keysOf(address);
    const { token: holder, transaction, slot: landedSlot, count, pending, isGuess } = answer;
    const open = readTransaction(transaction);
    const isHolder = token !== "" && holder === token;
    const renew = () => void redis?.run(STORE, { ...keys, token, transaction: "" });
    const renewal = isHolder ? setInterval(renew, RENEW_MS).unref() : undefined;
    let hasTransaction = !isHolder;

    function settle(slot = NOT_LANDED): void {
      clearInterval(renewal);
      // Without a transaction, the script is needed only until the claim expires.
      redis?.runLater(
        SETTLE,
        { ...keys, token: holder, slot },
        hasTransaction ? Infinity : LEASE_MS,
      );
    }

    if (transaction !== "" && !open.success) {
      settle();
      throw new CollectError({ kind: "stored-transaction-unreadable" }, open.error);
    }
    return {
      /** Set if another collect has signed: follow this transaction, and settle the claim. */
      openTransaction: open.data,
      /** Whether Redis did not answer: then another replica's transaction may be open. */
      isGuess,
      /** The slot in which the address's last transaction landed; 0 if unknown. */
      landedSlot,
      /**
       * How many transactions the unit has had; random while Redis is down. The next one's differs.
       */
      count,
      /**
       * A distribution that was signed for this account and has no outcome, because its replica
       * died.
       */
      pending: readTransaction(pending).data,
      /**
       * Call before sending. Returns false if another replica has taken the claim: do not send
       * then.
       */
      async store(signedTransaction: StoredTransaction) {
        clearInterval(renewal);
        hasTransaction = true;
        const text = JSON.stringify(signedTransaction);
        const call = { ...keys, token, transaction: text };
        const result = await redis?.run(STORE, call);
        // Redis is down: collects go on without Redis, and the transaction is stored once Redis
        // is back.
        if (result === undefined) redis?.runLater(STORE, call);
        return result !== 0;
      },
      /**
       * Frees the claim. Call when nothing was signed, or after any outcome, also `unknown`. The
       * slot: if the transaction landed; 0 if unknown.
       */
      settle,
    };
  }

  /** Without Redis, each claim is free. */
  const askRedis = async (address: string, newToken: string, awaitedToken: string) =>
    (await redis?.run(TAKE, { ...keysOf(address), newToken, awaitedToken })) ?? {
      ...{ token: newToken, transaction: "", slot: 0, pending: "" },
      ...{ count: randomInt(MAX_RANDOM_COUNT), isGuess: true },
    };

  return {
    /**
     * Returns what is known about an address, and the transaction in flight, without taking the
     * claim. Throws {@link CollectError} `stored-transaction-unreadable`.
     */
    look: async (address: string) => toClaim(address, "", await askRedis(address, "", "")),

    /**
     * Takes the claim of this address for `newToken`; also returned with another collect's
     * transaction. If another replica must sign first, returns its token: the next try awaits it.
     * Throws {@link CollectError} `stored-transaction-unreadable`.
     */
    async take(address: string, newToken: string, awaitedToken = "") {
      const answer = await askRedis(address, newToken, awaitedToken);
      const { token: holder, transaction } = answer;
      const isFree = holder === newToken || transaction !== "";
      return isFree ? toClaim(address, newToken, answer) : { holder };
    },

    /**
     * Keeps a distribution for an account that asked for it, until {@link keepCollect}. Call before
     * sending.
     */
    async keepPending(address: string, transaction: StoredTransaction): Promise<void> {
      const call = { ...keysOf(address), transaction: JSON.stringify(transaction) };
      await redis?.run(KEEP_PENDING, call);
    },

    /** Returns the account's newest collects of the last hour, the newest first. */
    async readCollects(address: string): Promise<readonly LastCollect[]> {
      const kept = (await redis?.run(READ_COLLECTS, keysOf(address))) ?? [];
      return newestOf([
        ...(collects.get(address) ?? []),
        ...kept.flatMap((each) => LAST_COLLECT.safeParse(each).data ?? []),
      ]);
    },

    /** Keeps what a transaction moved to an account, if anything, for an hour from its block. */
    keepCollect(address: string, signature: string, collect: LastCollect | undefined): void {
      const newest = newestOf([collect, ...(collects.get(address) ?? [])]);
      if (newest.length > 0) collects.set(address, newest);
      const call = {
        ...{ ...keysOf(address), signature },
        collect: collect ? toText(collect) : "",
        collectAt: collect?.at.getTime() ?? 0,
      };
      redis?.runLater(KEEP_COLLECT, call, REMEMBERED_MS);
    },
  };
}
