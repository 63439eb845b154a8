import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import { createLruCache } from "../../store/lru-cache.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import type { Redis } from "../../store/redis.ts";
import { script } from "../../store/script.ts";
import { afterFailure, backoffLeftMs, type Backoff } from "../../time/backoff.ts";
import { addMs, monotonicNow } from "../../time/monotonic.ts";
import { UNCOLLECTABLE, type UncollectableReason } from "../launchpad/coin-fees.ts";

const REMEMBERED_MS = 3_600_000;
const BACKOFF = { firstMs: 60_000, longestMs: 3_600_000 };
/**
 * An entry takes some 200 bytes. Adding a finding requires a simulated collect, adding a backoff a
 * failed transaction.
 */
const MAX_COINS = 10_000;

interface Finding {
  readonly reason: UncollectableReason;
  readonly tooLittle: bigint | undefined;
}

/** What a replica has learned of a coin. Without `backoffMs`: a finding. */
const NEWS = z.object({
  id: z.string(),
  reason: z.enum(Object.keys(UNCOLLECTABLE) as [UncollectableReason]).optional(),
  tooLittle: z
    .string()
    .regex(/^\d{1,20}$/)
    .transform(BigInt)
    .optional(),
  /** 0 if the coin's transaction has succeeded. */
  backoffMs: z.int().min(0).max(BACKOFF.longestMs).optional(),
});
type News = z.output<typeof NEWS>;

/** Uses `pcall`, so that an ACL user without permission for the channel causes no failures. */
const TELL = script({
  keys: ["channel"],
  args: ["news"],
  answer: z.unknown(),
  text: `
redis.pcall('PUBLISH', channel, news)
return true
`,
});

export type CoinFindings = ReturnType<typeof createCoinFindings>;

/**
 * Remembers what collects have learned of coins, at all replicas: they tell each other through a
 * channel of Redis, so no lookup waits for Redis.
 *
 * For lookups, for an hour: why the last attempt to distribute a coin's shared fees came to
 * nothing. The accounts that a lookup reads do not show the reason. The next collect tries again.
 *
 * For collects: coins whose sweep failed on the chain although its simulation succeeded. Such
 * failures can be repeated, and each costs a fee, so the coin backs off.
 */
export function createCoinFindings(
  { feePayer, redis }: { feePayer: string; redis: Redis | undefined } = {
    feePayer: "",
    redis: undefined,
  },
) {
  const channel = redisKeys.coinNews(feePayer);
  /** By the coin's mint. */
  const findings = createLruCache<string, Finding>(MAX_COINS, { ttl: REMEMBERED_MS });
  /** By mint. */
  const backoffs = createLruCache<string, Backoff>(MAX_COINS);

  function take({ id, reason, tooLittle, backoffMs }: News): void {
    if (backoffMs === undefined) findings.set(id, reason && { reason, tooLittle });
    else if (backoffMs === 0) backoffs.delete(id);
    else {
      const backoff = { waitMs: backoffMs, endsAt: addMs(monotonicNow(), backoffMs) };
      backoffs.set(id, backoff, { ttl: backoffMs + REMEMBERED_MS });
    }
  }

  function learn(news: News): void {
    take(news);
    const text = JSON.stringify({ ...news, tooLittle: news.tooLittle?.toString() });
    void redis?.run(TELL, { channel, news: text });
  }

  redis?.subscribe(channel, {
    onMessage(text) {
      const { data } = NEWS.safeParse(parseJson(text));
      if (data) take(data);
    },
    onReconnect: () => undefined,
  });

  return {
    /**
     * Returns why the fees cannot be distributed. Undefined if no collect tried within the hour, if
     * the last try succeeded, or if `distributable` is no longer too little.
     */
    reasonOf(mint: string, distributable: bigint): UncollectableReason | undefined {
      const { reason, tooLittle = distributable } = findings.get(mint) ?? {};
      return distributable <= tooLittle ? reason : undefined;
    },
    /**
     * Records the result of a simulation. `reason`: undefined if the fees were moved. `tooLittle`:
     * the most lamports that cannot be distributed, because they are too few.
     */
    found(mint: string, reason: UncollectableReason | undefined, tooLittle?: bigint): void {
      const finding = findings.get(mint);
      if (finding?.reason === reason && (!reason || finding?.tooLittle === tooLittle)) return;
      learn({ id: mint, reason, tooLittle });
    },

    /** Makes a coin back off, because its sweep failed on the chain. */
    backOff(mint: string): void {
      const last = backoffs.get(mint);
      const { waitMs } = afterFailure(last, BACKOFF);
      if (backoffLeftMs(last) === 0) learn({ id: mint, backoffMs: waitMs });
    },
    /** Returns for how many more ms the coin backs off; 0 without a backoff. */
    backsOffMs: (mint: string): number => backoffLeftMs(backoffs.get(mint)),
    /** Ends the backoff of a coin whose sweep has succeeded. */
    succeeded(mint: string): void {
      if (backoffs.has(mint)) learn({ id: mint, backoffMs: 0 });
    },
  };
}
