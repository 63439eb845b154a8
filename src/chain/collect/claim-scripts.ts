/**
 * The scripts of a claim. `claim` holds the token and the transaction of the collect that has the
 * claim, and the token of the replica that is next; `known` holds the address's last slot and
 * collect, and how many transactions it has had.
 */
import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import { script } from "../../store/script.ts";

/**
 * A claim without a transaction expires this long after its last renewal, in case its holder has
 * died.
 */
export const LEASE_MS = 15_000;
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
/** A collect is kept this long after its block's time. */
export const REMEMBERED_MS = 3_600_000;
/** For how long a replica that waits for a claim is next, after it last asked. */
const WAIT_MS = 1_000;
/** How many other collects of the account an answer lists. */
export const MAX_LISTED = 20;
/** How many collects of an account are kept: an answer does not list its own. */
export const MAX_COLLECTS = MAX_LISTED + 1;
/** Stands for the slot of a transaction that did not land. */
export const NOT_LANDED = -1;

const TAKEN = z.object({
  token: z.string(),
  transaction: z.string(),
  slot: z.int(),
  count: z.int(),
  pending: z.string(),
});
export type Taken = z.output<typeof TAKEN>;

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
export const STORE = script({
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
export const KEEP_PENDING = script({
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
export const SETTLE = script({
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
export const READ_COLLECTS = script({
  keys: ["known"],
  answer: z.tuple([z.string(), z.string()]),
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
export const KEEP_COLLECT = script({
  keys: ["known"],
  args: ["signature", "collect", "collectAt", "ttlMs"],
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
  if #kept > 0 then remember(ttlMs, 'collects', cjson.encode(kept)) end
end
lastAt = tonumber(lastAt) or 0
if lastAt > now + ${LANDED_MS} then lastAt = 0 end
if collect ~= '' and tonumber(collectAt) >= lastAt then
  remember(ttlMs, 'collect', collect, 'at', collectAt)
end
if pending and string.find(pending, signature, 1, true) then redis.call('HDEL', known, 'pending') end
return 1
`,
});
