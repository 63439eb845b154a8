import { monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import type { EndpointRanking } from "./endpoint-ranking.ts";
import type { Endpoint } from "./rpc-endpoint.ts";
import { isUnsupported } from "./rpc-error.ts";

/** As long as an endpoint that counts as down has failed at least. */
export const DOWN_AFTER_MS = 4_000;
/** For how long a failure has just been: then, an endpoint that is down may answer again. */
const JUST_MS = 1_000;
/**
 * A call that begins so long after the last failure finds out anew: an endpoint that fails now and
 * then, and is not asked in between, is not down.
 */
const OVER_MS = 2_000;

interface Failures {
  readonly since: MonotonicTime;
  readonly lastAt: MonotonicTime;
}

export type MethodFailures = ReturnType<typeof createMethodFailures>;

/**
 * Knows which methods fail at which endpoints, also if others succeed there: some providers do not
 * serve all methods.
 */
export function createMethodFailures(ranking: Pick<EndpointRanking, "mayRecover">) {
  /** The failures of each method at an endpoint, without a success or a long pause. */
  const all = new Map<Endpoint, Map<string, Failures>>();

  /** Whether all calls of some seconds have failed. */
  function isDown(endpoint: Endpoint, method: string): boolean {
    const failures = all.get(endpoint)?.get(method);
    return failures !== undefined && msSince(failures.since) >= DOWN_AFTER_MS;
  }

  return {
    /** Call when a call begins. */
    begin(endpoint: Endpoint, method: string): void {
      const failures = all.get(endpoint)?.get(method);
      if (failures && msSince(failures.lastAt) > OVER_MS) all.get(endpoint)?.delete(method);
    },

    /** Call also if the answer is unusable. */
    fail(endpoint: Endpoint, method: string): void {
      const methods = all.get(endpoint) ?? new Map<string, Failures>();
      all.set(endpoint, methods);
      const lastAt = monotonicNow();
      methods.set(method, { since: methods.get(method)?.since ?? lastAt, lastAt });
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
