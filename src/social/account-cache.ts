import { createLruCache, describeCache } from "../store/lru-cache.ts";
import { z } from "zod";
import { parseJson } from "../contract/parse-json.ts";
import { redisKeys } from "../store/redis-keys.ts";
import type { Redis } from "../store/redis.ts";
import { script } from "../store/script.ts";
import {
  ACCOUNT,
  isHandleKey,
  keysOf,
  nameOf,
  type AccountKey,
  type SocialAccount,
} from "./account.ts";
import { SocialError } from "./social-error.ts";

/** The account of a key, or a {@link SocialError} `not-found`. */
export type CachedAccount = SocialAccount | SocialError;

const MAX_ENTRIES = 200_000;
const MAX_NOT_FOUND_SECONDS = 60;

/** KEYS: one per account, all on one cluster node. Returns each key's value, and its TTL in ms. */
const READ = script({
  answer: z.array(z.tuple([z.string().nullable(), z.int()])),
  text: `
local found = {}
for i, key in ipairs(KEYS) do found[i] = {redis.call('GET', key), redis.call('PTTL', key)} end
return found
`,
});

/** KEYS: one per account. `entries`: a list of their values, as JSON. */
const WRITE = script({
  args: ["entries"],
  answer: z.unknown(),
  text: `
for i, entry in ipairs(cjson.decode(entries)) do
  redis.call('SET', KEYS[i], entry, 'PX', cjson.decode(entry).ttlMs)
end
return true
`,
});

const ENTRY = z.object({
  /** The TTL with which it was written: with what is left, this tells its age. */
  ttlMs: z.int(),
  /** Null if there is no such account. */
  account: ACCOUNT.nullable(),
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
  const maxAgeMs = (account: CachedAccount) =>
    1000 *
    Math.min(socialCacheSeconds, account instanceof SocialError ? MAX_NOT_FOUND_SECONDS : Infinity);

  /**
   * Returns undefined unless the value is an entry for this key: a wrong entry would give a wrong
   * address.
   */
  function decode(key: AccountKey, value: string): z.infer<typeof ENTRY> | undefined {
    const { data } = ENTRY.safeParse(parseJson(value));
    return !data?.account || keysOf(data.account).includes(key) ? data : undefined;
  }

  return {
    /** The entry in this process's cache. */
    get: (key: AccountKey): CachedAccount | undefined => entries.get(key),

    describe: () => describeCache(entries),

    /** Copies entries from Redis to this process's cache, so that `get` returns them. */
    async fetchFromRedis(keys: readonly AccountKey[]): Promise<void> {
      if (!redis || socialCacheSeconds === 0 || keys.length === 0) return;
      const answer = await redis.run(READ, { keys: keys.map(toRedisKey) });
      answer?.forEach(([value, leftMs], i) => {
        const key = keys[i]!;
        const entry = decode(key, value ?? "");
        // With more time left than it had, its age is unknown.
        if (!entry || leftMs > entry.ttlMs) return;
        const account = entry.account ?? new SocialError({ kind: "not-found" });
        const ttl = Math.min(leftMs, maxAgeMs(account) - (entry.ttlMs - leftMs));
        if (ttl > 0) entries.set(key, account, { ttl });
      });
    },

    /** Caches the network's responses, in this process and for the other replicas. */
    store(answers: ReadonlyMap<AccountKey, CachedAccount>): void {
      if (socialCacheSeconds === 0) return;
      const keys: string[] = [];
      const values: string[] = [];
      for (const [key, answer] of answers) {
        const isError = answer instanceof SocialError;
        if (isError && answer.failure.kind !== "not-found") continue;
        const ttlMs = maxAgeMs(answer);
        entries.set(key, answer, { ttl: ttlMs });
        keys.push(toRedisKey(key));
        values.push(JSON.stringify({ ttlMs, account: isError ? null : answer }));
      }
      if (keys.length > 0) void redis?.run(WRITE, { keys, entries: JSON.stringify(values) });
    },
  };
}
