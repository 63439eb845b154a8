import { LRUCache } from "lru-cache";
import { z } from "zod";
import { parseJson } from "../../upstream/parse-json.ts";
import type { Redis, Script } from "../../store/redis.ts";
import { toLamports, type Lamports } from "../lamports.ts";

/** What the last successful collect of an account moved. */
export interface LastCollect {
  readonly collected: Lamports;
  /** The withdrawable lamports at the address right after it. */
  readonly newBalance: Lamports;
  readonly signature: string;
  /** When its block was produced. */
  readonly at: Date;
}

/** How long a collect is remembered, from its block on. */
const REMEMBERED_MS = 3_600_000;
/** Of about 500 bytes each. With Redis only what was written while it was away depends on them. */
const MAX_IN_MEMORY = 10_000;

const keyOf = (id: string) => `v2:last-collect:{${id}}`;

/**
 * ARGV: the collect, the time of its block and its time to live, in ms. Keeps a newer collect, because an older one can
 * be written late.
 */
const RECORD: Script<unknown> = {
  answer: z.unknown(),
  text: `
local at = tonumber(redis.call('HGET', KEYS[1], 'at')) or 0
if at > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'collect', ARGV[1], 'at', ARGV[2])
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
`,
};

const READ: Script<string | null> = {
  answer: z.string().nullable(),
  text: "return redis.call('HGET', KEYS[1], 'collect')",
};

const digits = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform((text) => toLamports(BigInt(text)));
const STORED = z.object({
  collected: digits,
  newBalance: digits,
  signature: z.string(),
  at: z.int().transform((ms) => new Date(ms)),
});

export type LastCollects = ReturnType<typeof createLastCollects>;

/**
 * Remembers each account's last successful collect for an hour, for callers who lost its response: in memory, and in
 * Redis for all replicas.
 */
export function createLastCollects({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  const inMemory = new LRUCache<string, LastCollect>({ max: MAX_IN_MEMORY });

  /** In ms; not positive once the collect is forgotten. */
  const timeToLive = ({ at }: LastCollect) => at.getTime() + REMEMBERED_MS - Date.now();

  return {
    record(address: string, collect: LastCollect): void {
      const ttl = timeToLive(collect);
      const known = inMemory.get(address);
      if (ttl <= 0 || (known && known.at > collect.at)) return;
      inMemory.set(address, collect, { ttl });
      const { collected, newBalance, signature } = collect;
      const at = collect.at.getTime();
      const stored = { collected: String(collected), newBalance: String(newBalance), signature, at };
      redis?.runLaterIfSoon(
        ttl,
        RECORD,
        [keyOf(`${feePayer}:${address}`)],
        [JSON.stringify(stored), at, ttl],
      );
    },

    /** The account's last collect; undefined if it is unknown, or more than an hour ago. Never rejects. */
    async read(address: string): Promise<LastCollect | undefined> {
      const text = await redis?.run(READ, [keyOf(`${feePayer}:${address}`)], []);
      const shared = STORED.safeParse(parseJson(text ?? "")).data;
      const own = inMemory.get(address);
      const last = shared && own ? (own.at > shared.at ? own : shared) : (shared ?? own);
      return last && timeToLive(last) > 0 ? last : undefined;
    },
  };
}
