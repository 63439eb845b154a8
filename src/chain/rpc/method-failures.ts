import { monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import type { EndpointRanking } from "./endpoint-ranking.ts";
import type { Endpoint } from "./rpc-endpoint.ts";
import { isUnsupported } from "./rpc-error.ts";

/** As long as an endpoint that counts as down has failed at least. */
export const DOWN_AFTER_MS = 4_000;
/** For how long a failure has just been: then, an endpoint that is down may answer again. */
const JUST_MS = 1_000;
/** A failure long after the last one is the first of others. */
const OVER_MS = 10_000;

interface Failures {
  readonly since: MonotonicTime;
  lastAt: MonotonicTime;
}

export type MethodFailures = ReturnType<typeof createMethodFailures>;

/**
 * Knows which methods fail at which endpoints, also if others succeed there: some providers do not
 * serve all methods.
 */
export function createMethodFailures(ranking: Pick<EndpointRanking, "mayRecover">) {
  /** The failures of each method at an endpoint, without a success. */
  const all = new Map<Endpoint, Map<string, Failures>>();

  /** Whether the method has failed for some seconds, the last time not long ago. */
  function isDown(endpoint: Endpoint, method: string): boolean {
    const failures = all.get(endpoint)?.get(method);
    if (!failures || msSince(failures.lastAt) > OVER_MS) return false;
    return msSince(failures.since) >= DOWN_AFTER_MS;
  }

  return {
    /** Call also if the answer is unusable. */
    fail(endpoint: Endpoint, method: string): void {
      const methods = all.get(endpoint) ?? new Map<string, Failures>();
      all.set(endpoint, methods);
      const failures = methods.get(method);
      const lastAt = monotonicNow();
      if (failures && msSince(failures.lastAt) <= OVER_MS) failures.lastAt = lastAt;
      else methods.set(method, { since: lastAt, lastAt });
    },

    succeed(endpoint: Endpoint, method: string): void {
      all.get(endpoint)?.delete(method);
    },

    isDown,

    hasJustFailed(endpoint: Endpoint, method: string): boolean {
      const failures = all.get(endpoint)?.get(method);
      return failures !== undefined && msSince(failures.lastAt) < JUST_MS;
    },

    /**
     * Whether an endpoint whose call of the method has just failed with this error may soon answer:
     * others must not decide alone meanwhile. Ask after `fail`.
     */
    mayRecover: (endpoint: Endpoint, method: string, error: unknown): boolean =>
      ranking.mayRecover(endpoint, error) && !isUnsupported(error) && !isDown(endpoint, method),
  };
}
