import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import { createLruCache, describeCache } from "../../store/lru-cache.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import type { Redis } from "../../store/redis.ts";
import { script } from "../../store/script.ts";
import { nextWaitMs } from "../../time/backoff.ts";
import {
  addMs,
  LONG_AGO,
  monotonicNow,
  msUntil,
  toIsoTime,
  type MonotonicTime,
} from "../../time/monotonic.ts";
import type { CollectError } from "../errors/collect-error.ts";
import { UNCOLLECTABLE, type UncollectableReason } from "../launchpad/coin-fees.ts";

const SIMULATION_MS = 10_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const BACKOFF = { firstMs: MINUTE_MS, longestMs: HOUR_MS };
/** An entry takes some 500 bytes. Adding one takes a simulation or a transaction. */
const MAX_FAILURES = 50_000;
/** An entry takes some 200 bytes. Adding one takes a simulation. */
const MAX_REASONS = 10_000;

interface Failure {
  readonly until: MonotonicTime;
  /** How long the wait after the last transaction was; 0 without one. */
  readonly waitMs: number;
  /** Of the simulation that failed; undefined after a transaction. */
  readonly error?: CollectError | undefined;
}

interface Reason {
  readonly reason: UncollectableReason;
  readonly tooLittle: bigint | undefined;
}

/** What one replica tells the others: how long a key waits, 0 after a success; or a reason. */
const NEWS = z.object({
  id: z.string(),
  backoffMs: z.int().min(0).max(HOUR_MS).optional(),
  reason: z.enum(Object.keys(UNCOLLECTABLE) as [UncollectableReason]).optional(),
  tooLittle: z
    .string()
    .regex(/^\d{1,20}$/)
    .transform(BigInt)
    .optional(),
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

export type Failures = ReturnType<typeof createFailures>;

/**
 * Remembers what failed, and until when it is not tried again:
 *
 * | What failed                | For how long                  | Where           |
 * | -------------------------- | ----------------------------- | --------------- |
 * | a simulation               | 10 s                          | in this process |
 * | a transaction on the chain | a minute, doubling to an hour | at all replicas |
 * | a transaction that expired | a minute                      | at all replicas |
 *
 * A key is a coin's mint, a unit's key, an account's AMM vault, or {@link blockKey}. A success ends
 * the wait.
 *
 * For lookups, also remembers for an hour why the last attempt to distribute a coin's shared fees
 * came to nothing: the accounts that a lookup reads do not show it.
 *
 * Replicas tell each other through a channel of Redis, so nothing waits for Redis. One that misses
 * the news repeats a failure once.
 */
export function createFailures({
  feePayer,
  redis,
}: {
  feePayer: string;
  redis: Redis | undefined;
}) {
  const channel = redisKeys.coinNews(feePayer);
  const failures = createLruCache<string, Failure>(MAX_FAILURES, { ttl: 2 * HOUR_MS });
  /** By the coin's mint. */
  const reasons = createLruCache<string, Reason>(MAX_REASONS, { ttl: HOUR_MS });
  const leftMs = (key: string) => Math.max(0, msUntil(failures.get(key)?.until ?? LONG_AGO));

  function take({ id, backoffMs, reason, tooLittle }: News): void {
    if (backoffMs === undefined) reasons.set(id, reason && { reason, tooLittle });
    else if (backoffMs === 0) failures.delete(id);
    else failures.set(id, { until: addMs(monotonicNow(), backoffMs), waitMs: backoffMs });
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
    simulationFailed(key: string, error: CollectError): void {
      const { waitMs = 0 } = failures.get(key) ?? {};
      failures.set(key, { until: addMs(monotonicNow(), SIMULATION_MS), waitMs, error });
    },

    /** Failures at the same time count once. */
    failedOnChain(keys: readonly string[]): void {
      for (const id of keys) {
        const { waitMs = 0, error } = failures.get(id) ?? {};
        if (leftMs(id) > 0 && !error) continue;
        learn({ id, backoffMs: nextWaitMs(waitMs || undefined, BACKOFF) });
      }
    },

    /** Nothing is tried with these keys for so long, without a doubling. */
    hold(keys: readonly string[], backoffMs = MINUTE_MS): void {
      for (const id of keys)
        if (leftMs(id) < backoffMs) learn({ id, backoffMs: Math.floor(backoffMs) });
    },

    succeeded(keys: readonly string[]): void {
      for (const id of keys) if (failures.has(id)) learn({ id, backoffMs: 0 });
    },

    /** For how many more ms this is not tried; or 0. */
    leftMs,

    /** For the operator: what is not tried, and until when. Lists `most` keys at most. */
    describe(most: number) {
      const current = [...failures.entries()].filter(([, { until }]) => msUntil(until) > 0);
      const backingOff = current.slice(0, most).map(([key, { until, error }]) => ({
        // Without the caller's block of a `blockKey`.
        key: key.replace(/ .*/, ""),
        until: toIsoTime(until),
        after: error ? "simulation" : "transaction",
      }));
      return { backingOffCount: current.length, backingOff };
    },

    describeCache: () => describeCache(failures),

    /** The error of the simulation because of which this is not tried. */
    errorOf: (key: string): CollectError | undefined =>
      leftMs(key) > 0 ? failures.get(key)?.error : undefined,

    /**
     * Why a coin's shared fees cannot be distributed. Undefined if no collect tried within the hour,
     * if the last try succeeded, or if `distributable` is no longer too little.
     */
    reasonOf(mint: string, distributable: bigint): UncollectableReason | undefined {
      const { reason, tooLittle = distributable } = reasons.get(mint) ?? {};
      return distributable <= tooLittle ? reason : undefined;
    },

    /**
     * Records why a distribution came to nothing. `reason`: undefined if the fees were moved.
     * `tooLittle`: the most lamports that cannot be distributed, because they are too few.
     */
    found(mint: string, reason: UncollectableReason | undefined, tooLittle?: bigint): void {
      learn({ id: mint, reason, tooLittle });
    },
  };
}

/** The key of the coins that an address block names for an account. */
export const blockKey = (address: string, block: string | undefined): string =>
  `${address} ${block ?? ""}`;
