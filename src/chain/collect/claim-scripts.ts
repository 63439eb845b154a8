/**
 * The scripts of a claim. `claim` holds the token and the transaction of the collect that has the
 * claim; `known` holds the address's last slot, collect and backoff.
 */
import { z } from "zod";
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
export const SIGNED_MS = 7 * 24 * 3_600_000;
/**
 * How long a landed transaction and its slot stay readable: slow nodes may not have seen the
 * transaction yet.
 */
const LANDED_MS = 60_000;
/**
 * A collect is kept this long after its block's time, and a backoff this long after its end, to
 * double the next.
 */
export const REMEMBERED_MS = 3_600_000;
/** Stands for the slot of a transaction that did not land. */
export const NOT_LANDED = -1;
/** Stands for the backoff after a success. */
export const NO_BACKOFF = 0;
/** Stands for a backoff that stays as it is. */
export const KEEP_BACKOFF = "";

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * `awaitedToken`: of the collect that this one waits for, or "". Returns the holder's token; the
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
export const TAKE = script({
  keys: ["claim", "known"],
  args: ["newToken", "awaitedToken"],
  answer: z.tuple([z.string(), z.string(), z.int(), z.string(), z.int(), z.int()]),
  text: `${NOW}
local slot, collect, backoff, ends =
  unpack(redis.call('HMGET', known, 'slot', 'collect', 'backoff', 'ends'))
backoff = tonumber(backoff) or 0
local left = math.max(0, (tonumber(ends) or 0) - now)
if left > backoff then
  left = backoff
  redis.call('HSET', known, 'ends', now + left)
end
local function answer(token, transaction)
  return {token, transaction or '', tonumber(slot) or 0, collect or '', backoff, left}
end
local token, transaction, done =
  unpack(redis.call('HMGET', claim, 'token', 'transaction', 'done'))
if token and (not done or (transaction and token == awaitedToken)) then
  redis.call('HSET', claim, 'asked', '1')
  if not transaction and redis.call('PTTL', claim) > ${LEASE_MS} then
    redis.call('PEXPIRE', claim, ${LEASE_MS})
  end
  return answer(token, transaction)
end
redis.call('HSET', claim, 'token', newToken)
redis.call('HDEL', claim, 'transaction', 'done', 'asked')
redis.call('PEXPIRE', claim, ${LEASE_MS})
return answer(newToken)
`,
});

/**
 * Stores a transaction; with the transaction "", renews a claim that has none. Returns 0 if another
 * token is in the claim, else 1.
 */
export const STORE = script({
  keys: ["claim"],
  args: ["token", "transaction", "ttlMs"],
  answer: z.int(),
  text: `
local holder, stored = unpack(redis.call('HMGET', claim, 'token', 'transaction'))
if holder and holder ~= token then return 0 end
if transaction ~= '' then redis.call('HSET', claim, 'token', token, 'transaction', transaction) end
if transaction ~= '' or not stored then redis.call('PEXPIRE', claim, ttlMs) end
return 1
`,
});

/**
 * Returns 0 if another replica has read this token's claim; else deletes the claim, and returns 1.
 */
export const WITHDRAW = script({
  keys: ["claim"],
  args: ["token"],
  answer: z.int(),
  text: `
local holder, asked = unpack(redis.call('HMGET', claim, 'token', 'asked'))
if holder == token and asked then return 0 end
if holder == token then redis.call('DEL', claim) end
return 1
`,
});

/**
 * `slot`: or NOT_LANDED. `collect`: or "". `collectAt`: the time of the collect's block, in ms.
 * `backoffMs`: how long the next backoff lasts, NO_BACKOFF or KEEP_BACKOFF. Leaves a claim with
 * another token unchanged, and a newer slot or collect too, unless that collect's time lies ahead,
 * because a wrong clock wrote it.
 *
 * The rule of a backoff (time/backoff.ts): a failure while it lasts changes nothing, and a success
 * ends it. Twice the last wait is computed by the replica, from what it read with the claim.
 */
export const SETTLE = script({
  keys: ["claim", "known"],
  args: ["token", "slot", "collect", "collectAt", "collectTtlMs", "backoffMs"],
  answer: z.unknown(),
  text: `${NOW}
local function remember(ms, ...)
  redis.call('HSET', known, ...)
  if redis.call('PTTL', known) < tonumber(ms) then redis.call('PEXPIRE', known, ms) end
end
local lastSlot, lastAt, ends = unpack(redis.call('HMGET', known, 'slot', 'at', 'ends'))
lastSlot, lastAt, ends = tonumber(lastSlot) or 0, tonumber(lastAt) or 0, tonumber(ends) or 0
if lastAt > now + ${LANDED_MS} then lastAt = 0 end
if tonumber(slot) > lastSlot then remember(${LANDED_MS}, 'slot', slot) end
if collect ~= '' and tonumber(collectAt) >= lastAt then
  remember(collectTtlMs, 'collect', collect, 'at', collectAt)
end
local isOlder = tonumber(slot) > 0 and tonumber(slot) < lastSlot
if isOlder or backoffMs == '${KEEP_BACKOFF}' then
elseif backoffMs == '${NO_BACKOFF}' then redis.call('HDEL', known, 'backoff', 'ends')
elseif ends <= now then
  remember(backoffMs + ${REMEMBERED_MS}, 'backoff', backoffMs, 'ends', now + backoffMs)
end
if redis.call('HGET', claim, 'token') ~= token then return 1 end
if tonumber(slot) == ${NOT_LANDED} then redis.call('DEL', claim)
else
  redis.call('HSET', claim, 'done', '1')
  redis.call('PEXPIRE', claim, ${LANDED_MS})
end
return 1
`,
});
