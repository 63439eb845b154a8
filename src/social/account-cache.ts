import { LRUCache } from "lru-cache";
import { z } from "zod";
import { toSocialId } from "../contract/social-id.ts";
import { parseJson } from "../upstream/parse-json.ts";
import type { Redis, Script } from "../upstream/redis.ts";
import type { SocialAccount } from "./account.ts";
import { SocialError } from "./social-error.ts";

/** The account of a handle, or a {@link SocialError} `not-found`. */
export type CachedAccount = SocialAccount | SocialError;

const MAX_HANDLES = 100_000;
const MAX_NOT_FOUND_SECONDS = 60;

/** KEYS: one per handle. Returns Redis's time in ms, and for each key its value and its remaining time in ms. */
const READ: Script<[number, [string | null, number][]]> = {
  answer: z.tuple([z.int(), z.array(z.tuple([z.string().nullable(), z.int()]))]),
  text: `
local found = {}
for i, key in ipairs(KEYS) do found[i] = {redis.call('GET', key), redis.call('PTTL', key)} end
return {redis.call('TIME')[1] * 1000, found}
`,
};

/** KEYS: one per handle. ARGV: for each key its value and its expiry, in ms of Redis's time. */
const WRITE: Script<unknown> = {
  answer: z.unknown(),
  text: `
for i, key in ipairs(KEYS) do redis.call('SET', key, ARGV[2 * i - 1], 'PXAT', ARGV[2 * i]) end
return true
`,
};

const ACCOUNT = z.object({ id: z.string().refine((id) => toSocialId(id) === id), handle: z.string() });
/** The value for a handle without an account. */
const NOT_FOUND = "";

/**
 * Caches which account a lower-case handle belongs to: accounts for `cacheSeconds`, "no such account" for
 * 60 s at most. Each process has its own cache. With Redis, replicas also share their entries, which keep their
 * expiry.
 */
export function createAccountCache({
  apiUrl,
  cacheSeconds,
  redis,
}: {
  apiUrl: URL;
  cacheSeconds: number;
  redis: Redis | undefined;
}) {
  const entries = new LRUCache<string, CachedAccount>({ max: MAX_HANDLES, perf: performance });
  const toKey = (handle: string) => `account:${apiUrl.host}:${handle}`;
  /** Redis's time in ms at `performance.now()` 0, according to the last response. */
  let redisEpoch: number | undefined;

  return {
    /** The entry in this process's cache. */
    get: (handle: string): CachedAccount | undefined => entries.get(handle),

    /** Copies shared entries from Redis to this process's cache, so that `get` returns them. */
    async fetchShared(handles: readonly string[]): Promise<void> {
      if (!redis || cacheSeconds === 0) return;
      const answer = await redis.run(READ, handles.map(toKey), []);
      if (!answer) return;
      const [time, found] = answer;
      redisEpoch = time - performance.now();
      found.forEach(([value, ttl], i) => {
        const account = value === null ? undefined : decode(handles[i]!, value);
        if (account && ttl > 0) entries.set(handles[i]!, account, { ttl });
      });
    },

    /** Caches the network's responses, in this process and for the other replicas. */
    store(answers: ReadonlyMap<string, CachedAccount>): void {
      if (cacheSeconds === 0) return;
      const keys: string[] = [];
      const values: (string | number)[] = [];
      const now = performance.now();
      for (const [handle, answer] of answers) {
        const isFound = !(answer instanceof SocialError);
        if (!isFound && answer.failure.kind !== "not-found") continue;
        const ttl = 1000 * (isFound ? cacheSeconds : Math.min(cacheSeconds, MAX_NOT_FOUND_SECONDS));
        entries.set(handle, answer, { ttl });
        if (redisEpoch === undefined) continue;
        keys.push(toKey(handle));
        // An absolute expiry, because a frozen Redis may run the script much later.
        values.push(isFound ? JSON.stringify(answer) : NOT_FOUND, Math.floor(redisEpoch + now) + ttl);
      }
      if (keys.length > 0) void redis?.run(WRITE, keys, values);
    },
  };
}

/** Undefined for a value that is not an account of this handle. Strict, because the address is derived from it. */
function decode(handle: string, value: string): CachedAccount | undefined {
  if (value === NOT_FOUND) return new SocialError({ kind: "not-found" });
  const { success, data } = ACCOUNT.safeParse(parseJson(value));
  return success && data.handle.toLowerCase() === handle ? data : undefined;
}
