import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { ReplicaCount } from "../store/replica-count.ts";
import type { UpstreamAnswer } from "../upstream/http.ts";
import {
  addMs,
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msUntil,
  toIsoTime,
} from "../time/monotonic.ts";
import { sleep } from "../time/sleep.ts";

export type CallQuota = ReturnType<typeof createCallQuota>;

/** Calls are not delayed while more than this fraction of the network's limit is left. */
const PLENTY = 0.8;
/**
 * The network's documented limit of calls in a window, for responses that do not state the limit.
 */
const CALLS_PER_WINDOW = 300;
/** 15 minutes. A header that names a later reset is wrong. */
const WINDOW_MS = 900_000;
/** The limits that a 429 may name, with the longest time until each resets. */
const LIMITS = [
  ["x-rate-limit", WINDOW_MS],
  ["x-app-limit-24hour", 24 * 3_600_000],
  ["x-user-limit-24hour", 24 * 3_600_000],
] as const;
/** Used when a 429 names no valid reset of a limit that is used up. */
const DEFAULT_RESET_MS = 60_000;
const MAX_WAIT_MS = 5_000;
/**
 * The fraction of `socialTimeoutMs` that a lookup may wait for its call. The rest is for the call
 * itself.
 */
const WAIT_FRACTION = 0.8;

/** The spacing of calls until the network's reset, according to one response. */
interface Pace {
  /** The network counts calls by handles and by ids separately. */
  readonly kind: string;
  readonly intervalMs: number;
  readonly remaining: number;
  readonly limit: number;
  readonly resetAt: MonotonicTime;
}

/**
 * Spreads the calls that the network allows (300 in 15 minutes) over the time until its reset.
 * While more than four fifths are left, no call waits. Later calls are spaced evenly over the rest
 * of the window, so each gathers more keys. Each of the `replicas` makes an equal part of the
 * calls. A call waits for at most 5 s, and at most four fifths of `socialTimeoutMs`. If the spacing
 * is longer, calls may run out before the reset.
 */
export function createCallQuota(needs: {
  socialTimeoutMs: number;
  replicas: Pick<ReplicaCount, "count">;
}) {
  const maxWaitMs = Math.min(MAX_WAIT_MS, WAIT_FRACTION * needs.socialTimeoutMs);
  const paces = new Map<string, Pace>();
  const currentPaces = () => [...paces.values()].filter(({ resetAt }) => msUntil(resetAt) > 0);
  /** When the next call may be made, while calls are spaced. */
  let nextAt = LONG_AGO;

  return {
    /** Reads the rate limit headers of a response. */
    record(kind: string, headers: UpstreamAnswer["headers"]): void {
      const limit = toCount(headers["x-rate-limit-limit"]) ?? CALLS_PER_WINDOW;
      const remaining = toCount(headers["x-rate-limit-remaining"]);
      const leftMs = msUntilReset(headers) ?? 0;
      if (remaining === undefined || leftMs <= 0) return;
      const isPlenty = remaining > PLENTY * limit;
      const intervalMs = isPlenty ? 0 : Math.ceil(leftMs / Math.max(1, remaining));
      const resetAt = addMs(monotonicNow(), leftMs);
      paces.set(kind, { kind, intervalMs, remaining, limit, resetAt });
    },

    /**
     * Reserves the next call, and resolves when it may be made; undefined if it may be made at
     * once.
     */
    turn(): Promise<unknown> | undefined {
      const intervalMs = Math.max(0, ...currentPaces().map((pace) => pace.intervalMs));
      if (intervalMs === 0) return undefined;
      const waitMs = Math.min(Math.max(0, msUntil(nextAt)), maxWaitMs);
      nextAt = addMs(monotonicNow(), waitMs + intervalMs * needs.replicas.count());
      return waitMs > 0 ? sleep(waitMs) : undefined;
    },

    /** The calls that are left until the network's reset, of each kind for which this is known. */
    describe: () =>
      currentPaces().map(({ kind, remaining, limit, resetAt }) => ({
        ...{ kind, remaining, limit },
        resetAt: toIsoTime(resetAt),
      })),

    /** The fraction of the network's limit that is left, 0 to 1. */
    leftRatio: (): number =>
      Math.min(1, ...currentPaces().map(({ remaining, limit }) => remaining / Math.max(1, limit))),
  };
}

/** The seconds until the latest reset that a 429 names, of the limits that are used up. */
export function secondsUntilReset(headers: UpstreamAnswer["headers"]): number {
  const usedLimits = LIMITS.filter(([limit]) => !toCount(headers[`${limit}-remaining`]));
  const resets = usedLimits.flatMap(
    ([limit, longestMs]) => msUntilReset(headers, limit, longestMs) ?? [],
  );
  return toRetryAfterSeconds(resets.length > 0 ? Math.max(...resets) : DEFAULT_RESET_MS);
}

/** Counts from the response's own time: this machine's clock may be ahead or behind. */
function msUntilReset(
  { date, ...headers }: UpstreamAnswer["headers"],
  limit = "x-rate-limit",
  longestMs = WINDOW_MS,
): number | undefined {
  const reset = toCount(headers[`${limit}-reset`]);
  const sentAt = (typeof date === "string" && Date.parse(date)) || Date.now();
  return reset === undefined ? undefined : Math.min(reset * 1000 - sentAt, longestMs);
}

function toCount(header: string | string[] | undefined): number | undefined {
  return typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}
