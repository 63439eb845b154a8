import { LONG_AGO, monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
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

/** The calls of a method since an endpoint's last success. */
interface Calls {
  /** When the first of them began. */
  readonly since: MonotonicTime;
  /** Undefined while none of them has failed. */
  readonly failedAt: MonotonicTime | undefined;
  /** Whether all calls of some seconds have failed. */
  readonly areDown: boolean;
}

export type MethodFailures = ReturnType<typeof createMethodFailures>;

/**
 * Knows which methods fail at which endpoints, also if others succeed there: some providers do not
 * serve all methods. What is down stays so until a success.
 */
export function createMethodFailures(
  ranking: Pick<EndpointRanking, "mayRecover" | "isDown" | "backsOff">,
) {
  const all = new Map<Endpoint, Map<string, Calls>>();

  const callsOf = (endpoint: Endpoint, method: string) => all.get(endpoint)?.get(method);

  function set(endpoint: Endpoint, method: string, calls: Calls): void {
    const methods = all.get(endpoint) ?? new Map<string, Calls>();
    all.set(endpoint, methods);
    methods.set(method, calls);
  }

  /** Whether no answer is expected: the endpoint is down and backs off, or the method is down. */
  const isDown = (endpoint: Endpoint, method: string | undefined): boolean =>
    (ranking.isDown(endpoint) && ranking.backsOff(endpoint)) ||
    (method !== undefined && callsOf(endpoint, method)?.areDown === true);

  return {
    /** Call when a call begins. */
    begin(endpoint: Endpoint, method: string): void {
      const { failedAt = LONG_AGO, areDown = false } = callsOf(endpoint, method) ?? {};
      if (!areDown && msSince(failedAt) > OVER_MS)
        set(endpoint, method, { since: monotonicNow(), failedAt: undefined, areDown });
    },

    /** Call also if the answer is unusable. */
    fail(endpoint: Endpoint, method: string): void {
      const failedAt = monotonicNow();
      const { since = failedAt, areDown = false } = callsOf(endpoint, method) ?? {};
      const isLong = msSince(since) >= DOWN_AFTER_MS;
      set(endpoint, method, { since, failedAt, areDown: areDown || isLong });
    },

    succeed(endpoint: Endpoint, method: string): void {
      all.get(endpoint)?.delete(method);
    },

    isDown,

    hasJustFailed(endpoint: Endpoint, method: string): boolean {
      const { failedAt = LONG_AGO } = callsOf(endpoint, method) ?? {};
      return msSince(failedAt) < JUST_MS;
    },

    /**
     * Whether an endpoint whose call of the method has just failed with this error may soon answer:
     * others must not decide alone meanwhile. Ask after `fail`.
     */
    mayRecover: (endpoint: Endpoint, method: string, error: unknown): boolean =>
      ranking.mayRecover(endpoint, error) && !isUnsupported(error) && !isDown(endpoint, method),
  };
}
