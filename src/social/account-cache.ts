import { createLruCache, describeCache } from "../store/lru-cache.ts";
import { z } from "zod";
import { toSocialId } from "../contract/social-id.ts";
import { parseJson } from "../contract/parse-json.ts";
import { redisKeys } from "../store/redis-keys.ts";
import type { Redis } from "../store/redis.ts";
import { scriptOverKeys } from "../store/script.ts";
import {
  isHandleKey,
  nameOf,
  toHandleKey,
  type AccountKey,
  type SocialAccount,
} from "./account.ts";
import { CACHED_PROFILE } from "./profile.ts";
import { SocialError } from "./social-error.ts";

/** The account of a key, or a {@link SocialError} `not-found`. */
export type CachedAccount = SocialAccount | SocialError;

const MAX_ENTRIES = 200_000;
const MAX_NOT_FOUND_SECONDS = 60;

/**
 * KEYS: one per account, all on one cluster node. Returns Redis's time, and each key's value and
 * TTL. Times in ms.
 */
const READ = scriptOverKeys({
  answer: z.tuple([z.int(), z.array(z.tuple([z.string().nullable(), z.int()]))]),
  text: `
local found = {}
for i, key in ipairs(KEYS) do found[i] = {redis.call('GET', key), redis.call('PTTL', key)} end
local clock = redis.call('TIME')
return {clock[1] * 1000 + math.floor(clock[2] / 1000), found}
`,
});

/** KEYS: one per account. `expiresAt` is in ms of Redis's time. */
const WRITE = scriptOverKeys({
  each: ["value", "expiresAt"],
  answer: z.unknown(),
  text: `
for i, key in ipairs(KEYS) do redis.call('SET', key, value[i], 'PXAT', expiresAt[i]) end
return true
`,
});

const ENTRY = z.object({
  /** In ms of Redis's time. */
  writtenAt: z.int(),
  /** Null if there is no such account. */
  account: z
    .object({
      id: z.string().refine((id) => toSocialId(id) === id),
      handle: z.string(),
      profile: CACHED_PROFILE,
    })
    .nullable(),
});

/**
 * Caches an account only under the key of the lookup: a lookup by id does not cache the handle,
 * because only a lookup by handle shows who has it now. Keeps accounts for `socialCacheSeconds`,
 * `not-found` for 60 s at most. With Redis, replicas use each other's entries until the writer's
 * expiry or the reader's maximum age, whichever is earlier.
 */
export function createAccountCache(needs: {
  socialApiUrl: URL;
  socialCacheSeconds: number;
  redis?: Redis | undefined;
}) {
  const { socialApiUrl, socialCacheSeconds, redis } = needs;
  const entries = createLruCache<AccountKey, CachedAccount>(MAX_ENTRIES);
  const toRedisKey = (key: AccountKey) =>
    (isHandleKey(key) ? redisKeys.account : redisKeys.accountById)(socialApiUrl.host, nameOf(key));
  const maxAgeMs = (isFound: boolean) =>
    1000 * (isFound ? socialCacheSeconds : Math.min(socialCacheSeconds, MAX_NOT_FOUND_SECONDS));
  /** Redis's time, in ms, when `performance.now()` was 0. Updated by each read. */
  let redisEpoch: number | undefined;

  /**
   * Returns undefined unless the value is an entry for this key: a wrong entry would give a wrong
   * address.
   */
  function decode(key: AccountKey, value: string): z.infer<typeof ENTRY> | undefined {
    const { data } = ENTRY.safeParse(parseJson(value));
    const account = data?.account;
    if (!account) return data;
    return (isHandleKey(key) ? toHandleKey(account.handle) : account.id) === key ? data : undefined;
  }

  return {
    /** The entry in this process's cache. */
    get: (key: AccountKey): CachedAccount | undefined => entries.get(key),

    describe: () => describeCache(entries),

    /** Copies entries from Redis to this process's cache, so that `get` returns them. */
    async fetchFromRedis(keys: readonly AccountKey[]): Promise<void> {
      if (!redis || socialCacheSeconds === 0) return;
      const answer = await redis.run(READ, { each: keys.map((key) => ({ key: toRedisKey(key) })) });
      if (!answer) return;
      const [time, foundEntries] = answer;
      redisEpoch = time - performance.now();
      keys.forEach((key, i) => {
        const [value, remainingMs] = foundEntries[i] ?? [null, 0];
        const entry = value === null ? undefined : decode(key, value);
        // Written while Redis's clock was ahead: the entry's age is unknown.
        if (!entry || entry.writtenAt > time) return;
        const maxAge = maxAgeMs(entry.account !== null);
        const ttl = Math.min(remainingMs, maxAge, entry.writtenAt + maxAge - time);
        const account = entry.account ?? new SocialError({ kind: "not-found" });
        if (ttl > 0) entries.set(key, account, { ttl });
      });
    },

    /** Caches the network's responses, in this process and for the other replicas. */
    store(answers: ReadonlyMap<AccountKey, CachedAccount>): void {
      if (socialCacheSeconds === 0) return;
      const each: { key: string; value: string; expiresAt: number }[] = [];
      const now = performance.now();
      for (const [key, answer] of answers) {
        const isFound = !(answer instanceof SocialError);
        if (!isFound && answer.failure.kind !== "not-found") continue;
        const ttl = maxAgeMs(isFound);
        entries.set(key, answer, { ttl });
        if (redisEpoch === undefined) continue;
        const writtenAt = Math.floor(redisEpoch + now);
        const value = JSON.stringify({ writtenAt, account: isFound ? answer : null });
        // An absolute expiry, because a frozen Redis may run the script much later.
        each.push({ key: toRedisKey(key), value, expiresAt: writtenAt + ttl });
      }
      if (each.length > 0) void redis?.run(WRITE, { each });
    },
  };
}
