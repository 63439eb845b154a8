import { z } from "zod";
import type { UpstreamAnswer } from "../upstream/http.ts";
import type { Redis, Script } from "../upstream/redis.ts";

/** The network counts calls by handles and by ids separately. */
export type CallKind = "usernames" | "ids";

export type CallQuota = ReturnType<typeof createCallQuota>;

/** Calls are not delayed while more than this part of the network's limit is left. */
const PLENTY = 0.8;
/** The network's documented limit of calls in 15 minutes, for responses that do not name it. */
const DEFAULT_LIMIT = 300;
/** The network's rate limit window; a later reset is a mistake. */
const MAX_RESET_MS = 900_000;
const MAX_WAIT_MS = 5_000;
/** The part of a lookup's time that it may wait for its call. The rest is for the call itself. */
const WAIT_PART = 0.8;

/** KEYS: where the interval is kept. ARGV: the interval in ms, and how long it applies, in ms. */
const SET_INTERVAL: Script<unknown> = {
  answer: z.unknown(),
  text: "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])",
};

/**
 * KEYS: the time of the next turn, then the intervals of all kinds. ARGV: the longest wait in ms.
 * Takes a turn, and returns the wait until then in ms. All replicas' turns are an interval apart.
 */
const TAKE_TURN: Script<number> = {
  answer: z.int(),
  text: `
local interval = 0
for i = 2, #KEYS do interval = math.max(interval, tonumber(redis.call('GET', KEYS[i]) or 0)) end
if interval == 0 then return 0 end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local wait = math.max(0, math.min(tonumber(redis.call('GET', KEYS[1]) or 0) - now, tonumber(ARGV[1])))
redis.call('SET', KEYS[1], now + wait + interval, 'PX', wait + interval)
return wait
`,
};

/** How far apart calls are until the network's reset, according to one response. Times in `performance.now()` time. */
interface Pace {
  readonly intervalMs: number;
  readonly usedPart: number;
  readonly resetAt: number;
}

/**
 * Spaces calls so that the network's limit is not used up before its reset. While many are left, no call waits. Once a
 * fifth is used, calls are spaced evenly over the rest of the window, so each gathers more keys. All replicas take
 * turns while Redis is available; otherwise each spaces its own calls, by the same headers.
 *
 * A turn comes after at most 5 s, and at most four fifths of `timeoutMs`, so that lookups that wait for it still have
 * time for the call. If that is too often, calls run out before the reset.
 */
export function createCallQuota({
  apiUrl,
  timeoutMs,
  redis,
}: {
  apiUrl: URL;
  timeoutMs: number;
  redis: Redis | undefined;
}) {
  const maxWaitMs = Math.floor(Math.min(MAX_WAIT_MS, WAIT_PART * timeoutMs));
  const keyOf = (name: string) => `v2:calls:{${apiUrl.host}}:${name}`;
  const turnKeys = [keyOf("next"), keyOf("usernames"), keyOf("ids")];
  const paces = new Map<CallKind, Pace>();
  let nextTurnAt = 0;

  const currentPaces = () => [...paces.values()].filter(({ resetAt }) => resetAt > performance.now());

  /** Takes a turn in this process alone; returns the wait until then. */
  function takeOwnTurn(): number {
    const intervalMs = Math.max(0, ...currentPaces().map((pace) => pace.intervalMs));
    if (intervalMs === 0) return 0;
    const now = performance.now();
    const waitMs = Math.max(0, Math.min(nextTurnAt - now, maxWaitMs));
    nextTurnAt = now + waitMs + intervalMs;
    return waitMs;
  }

  return {
    /** Reads the rate limit headers of a response. */
    record(kind: CallKind, headers: UpstreamAnswer["headers"]): void {
      const read = (name: string) => toCount(headers[`x-rate-limit-${name}`]);
      const [limit = DEFAULT_LIMIT, remaining, reset] = [read("limit"), read("remaining"), read("reset")];
      if (remaining === undefined || reset === undefined) return;
      const leftMs = Math.min(reset * 1000 - Date.now(), MAX_RESET_MS);
      if (leftMs <= 0) return;
      const isPlenty = remaining > PLENTY * limit;
      const intervalMs = isPlenty ? 0 : Math.ceil(leftMs / Math.max(1, remaining));
      const usedPart = Math.max(0, 1 - remaining / Math.max(1, limit));
      paces.set(kind, { intervalMs, usedPart, resetAt: performance.now() + leftMs });
      if (intervalMs > 0) void redis?.run(SET_INTERVAL, [keyOf(kind)], [intervalMs, leftMs]);
    },

    /** Takes a turn for one call, and resolves when it comes. Undefined, without Redis, if that is at once. */
    turn(): Promise<unknown> | undefined {
      if (redis) return takeTurnInRedis(redis);
      const waitMs = takeOwnTurn();
      return waitMs > 0 ? sleep(waitMs) : undefined;
    },

    /** The part of the network's limit that is used, 0 to 1. */
    usedPart: (): number => Math.max(0, ...currentPaces().map((pace) => pace.usedPart)),
  };

  async function takeTurnInRedis(redis: Redis): Promise<void> {
    const waitMs = (await redis.run(TAKE_TURN, turnKeys, [maxWaitMs])) ?? takeOwnTurn();
    if (waitMs > 0) await sleep(waitMs);
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function toCount(header: string | string[] | undefined): number | undefined {
  return typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}
