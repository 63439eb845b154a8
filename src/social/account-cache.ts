import { LRUCache } from "lru-cache";
import { z } from "zod";
import { ContractError } from "../contract/errors.ts";
import { parseJson } from "../upstream/parse-json.ts";
import type { Redis, Script } from "../upstream/redis.ts";
import { toSocialId, type SocialAccount } from "./account.ts";

/** The account of a handle, or SOCIAL_NOT_FOUND. */
export type KnownAccount = SocialAccount | ContractError;

const MAX_HANDLES = 100_000;
const MAX_NOT_FOUND_SECONDS = 60;

/** KEYS: one a handle. Gives Redis's time in ms, and for each key its value and for how many ms it is believed. */
const READ: Script<[number, [string | null, number][]]> = {
  answer: z.tuple([z.int(), z.array(z.tuple([z.string().nullable(), z.int()]))]),
  text: `
local found = {}
for i, key in ipairs(KEYS) do found[i] = {redis.call('GET', key), redis.call('PTTL', key)} end
return {redis.call('TIME')[1] * 1000, found}
`,
};

/** KEYS: one a handle. ARGV: for each its value, and until when, in ms of Redis's time, it is believed. */
const WRITE: Script<unknown> = {
  answer: z.unknown(),
  text: `
for i, key in ipairs(KEYS) do redis.call('SET', key, ARGV[2 * i - 1], 'PXAT', ARGV[2 * i]) end
return true
`,
};

const ACCOUNT = z.object({ id: z.string().refine((id) => toSocialId(id) === id), handle: z.string() });
/** The value of a handle that nobody has. */
const NOT_FOUND = "";

/**
 * Which account a handle, in lower case, belongs to: believed for `cacheSeconds`, "no such account" for
 * 60 s at most. This process remembers it, and all replicas do when there is Redis; what one of them has
 * learnt another does not believe for longer.
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
  const known = new LRUCache<string, KnownAccount>({ max: MAX_HANDLES, perf: performance });
  const toKey = (handle: string) => `account:${apiUrl.host}:${handle}`;
  /** Redis's time when the clock of this process was at 0, since it was last asked. */
  let redisEpoch: number | undefined;

  return {
    /** What this process knows. */
    get: (handle: string): KnownAccount | undefined => known.get(handle),

    /** Asks what all replicas know of handles, so that `get` knows it afterwards. */
    async learn(handles: readonly string[]): Promise<void> {
      if (!redis || cacheSeconds === 0) return;
      const answer = await redis.run(READ, handles.map(toKey), []);
      if (!answer) return;
      const [time, found] = answer;
      redisEpoch = time - performance.now();
      found.forEach(([value, ttl], i) => {
        const account = value === null ? undefined : decode(handles[i]!, value);
        if (account && ttl > 0) known.set(handles[i]!, account, { ttl });
      });
    },

    /** Remembers what the network has just told, here and for all replicas. */
    remember(answers: ReadonlyMap<string, KnownAccount>): void {
      if (cacheSeconds === 0) return;
      const keys: string[] = [];
      const values: (string | number)[] = [];
      const now = performance.now();
      for (const [handle, answer] of answers) {
        const isFound = !(answer instanceof ContractError);
        if (!isFound && answer.code !== "SOCIAL_NOT_FOUND") continue;
        const ttl = 1000 * (isFound ? cacheSeconds : Math.min(cacheSeconds, MAX_NOT_FOUND_SECONDS));
        known.set(handle, answer, { ttl });
        if (redisEpoch === undefined) continue;
        keys.push(toKey(handle));
        // A moment and no span: who knows how long the script lies before a Redis that does not run.
        values.push(isFound ? JSON.stringify(answer) : NOT_FOUND, Math.floor(redisEpoch + now) + ttl);
      }
      if (keys.length > 0) void redis?.run(WRITE, keys, values);
    },
  };
}

/** Undefined for what is no account of this handle: an address follows from it, so nothing is taken on trust. */
function decode(handle: string, value: string): KnownAccount | undefined {
  if (value === NOT_FOUND) return new ContractError("SOCIAL_NOT_FOUND");
  const { success, data } = ACCOUNT.safeParse(parseJson(value));
  return success && data.handle.toLowerCase() === handle ? data : undefined;
}
