import type { Logger } from "../../observability/log.ts";
import { afterFailure, isBackingOff, type Backoff } from "../../time/backoff.ts";
import { LONG_AGO, monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";
import type { Endpoint } from "./rpc-endpoint.ts";

interface Failures {
  /** The backoff since the endpoint's last success, if it has failed since then. */
  backoff: Backoff | undefined;
  /** When the endpoint last failed. */
  lastAt: MonotonicTime;
}

const BACKOFF = { firstMs: 500, longestMs: 30_000 };
/** That of the fourth failure in a row, at least 3.5 s after the first. */
const WAIT_WHEN_DOWN_MS = 4_000;

export type EndpointBackoff = ReturnType<typeof createEndpointBackoff>;

/**
 * Knows which endpoints have failed since their last success, and back off ({@link afterFailure}).
 * The caller decides what a failure is. `warning`: logged with an endpoint's first failure since
 * its last success, if there is another endpoint.
 */
export function createEndpointBackoff(needs: {
  endpoints: readonly Endpoint[];
  warning: string;
  log: Logger;
}) {
  const { endpoints, warning, log } = needs;
  const all = new Map(
    endpoints.map((endpoint): [Endpoint, Failures] => [
      endpoint,
      { backoff: undefined, lastAt: LONG_AGO },
    ]),
  );
  const of = (endpoint: Endpoint) => all.get(endpoint)!;

  return {
    fail(endpoint: Endpoint, cause?: unknown): void {
      const failures = of(endpoint);
      failures.lastAt = monotonicNow();
      if (!failures.backoff && endpoints.length > 1)
        log.warn({ host: endpoint.host, err: cause }, warning);
      failures.backoff = afterFailure(failures.backoff, BACKOFF);
    },

    succeed(endpoint: Endpoint): void {
      of(endpoint).backoff = undefined;
    },

    /** Whether the endpoint has failed since its last success. */
    hasFailed: (endpoint: Endpoint) => of(endpoint).backoff !== undefined,

    /** Whether the other endpoints are tried first. */
    isBackingOff: (endpoint: Endpoint) => isBackingOff(of(endpoint).backoff),

    /** Whether the endpoint has failed again and again for some seconds. */
    isDown: (endpoint: Endpoint) => (of(endpoint).backoff?.waitMs ?? 0) >= WAIT_WHEN_DOWN_MS,

    lastFailureAt: (endpoint: Endpoint) => of(endpoint).lastAt,

    /** Ends all backoffs. */
    forget(): void {
      for (const failures of all.values()) failures.backoff = undefined;
    },
  };
}
