import { createBuckets, type Bucket } from "../store/buckets.ts";
import type { UpstreamAnswer } from "../upstream/http.ts";
import type { Redis } from "../store/redis.ts";

export type CallQuota = ReturnType<typeof createCallQuota>;

/** Calls are not delayed while more than this part of the network's limit is left. */
const PLENTY = 0.8;
/** The network's documented limit of calls in a window, for responses that do not name it. */
const CALLS_PER_WINDOW = 300;
/** 15 minutes. A later reset is a mistake. */
const WINDOW_MS = 900_000;
const MAX_WAIT_MS = 5_000;
/** The part of a lookup's time that it may wait for its call. The rest is for the call itself. */
const WAIT_PART = 0.8;

/** How far apart calls are until the network's reset, according to one response. Times in `performance.now()` time. */
interface Pace {
  readonly intervalMs: number;
  readonly remaining: number;
  readonly limit: number;
  readonly resetAt: number;
}

/**
 * Spaces calls so that the network's limit is not used up before its reset. While many are left, no call waits. Once a
 * fifth is used, calls are spaced evenly over the rest of the window, so each gathers more keys: a turn is the unit of a
 * bucket that holds one. All replicas take turns while Redis is available; otherwise each spaces its own calls, by the
 * same headers.
 *
 * A turn comes after at most 5 s, and at most four fifths of `socialTimeoutMs`, so that lookups that wait for it still have
 * time for the call. If that is too often, calls run out before the reset.
 */
export function createCallQuota({
  socialApiUrl,
  socialTimeoutMs,
  redis,
}: {
  socialApiUrl: URL;
  socialTimeoutMs: number;
  redis: Redis | undefined;
}) {
  const maxWaitMs = Math.floor(Math.min(MAX_WAIT_MS, WAIT_PART * socialTimeoutMs));
  /** The network counts calls by handles and by ids separately. */
  const paces = new Map<string, Pace>();
  const buckets = createBuckets({ name: `calls:${socialApiUrl.host}`, redis, partWithoutRedis: 1 });

  const currentPaces = () => [...paces.values()].filter(({ resetAt }) => resetAt > performance.now());

  return {
    /** Reads the rate limit headers of a response. */
    record(kind: string, headers: UpstreamAnswer["headers"]): void {
      const read = (name: string) => toCount(headers[`x-rate-limit-${name}`]);
      const [limit = CALLS_PER_WINDOW, remaining, reset] = [read("limit"), read("remaining"), read("reset")];
      if (remaining === undefined || reset === undefined) return;
      const leftMs = Math.min(reset * 1000 - Date.now(), WINDOW_MS);
      if (leftMs <= 0) return;
      const isPlenty = remaining > PLENTY * limit;
      const intervalMs = isPlenty ? 0 : Math.ceil(leftMs / Math.max(1, remaining));
      paces.set(kind, { intervalMs, remaining, limit, resetAt: performance.now() + leftMs });
    },

    /** Takes a turn for one call, and resolves when it comes. Undefined while calls are not spaced. */
    turn(): Promise<unknown> | undefined {
      const msPerUnit = Math.max(0, ...currentPaces().map(({ intervalMs }) => intervalMs));
      return msPerUnit > 0 ? takeTurn({ name: "turn", burst: 1, msPerUnit }) : undefined;
    },

    /** The calls that the network still allows until its reset, by its last response; undefined if it has not said so. */
    left: () => currentPaces().map(({ remaining, limit }) => ({ remaining, limit }))[0],

    /** The part of the network's limit that is used, 0 to 1. */
    usedPart: (): number =>
      Math.max(0, ...currentPaces().map(({ remaining, limit }) => 1 - remaining / Math.max(1, limit))),
  };

  async function takeTurn(turn: Bucket): Promise<void> {
    const { amount, waitMs } = await buckets.take([turn], { wanted: 1, aheadMs: maxWaitMs });
    const ownMs = amount > 0 ? waitMs : maxWaitMs;
    if (ownMs > 0) await sleep(ownMs);
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function toCount(header: string | string[] | undefined): number | undefined {
  return typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}
