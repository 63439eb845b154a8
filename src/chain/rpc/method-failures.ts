import { monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import type { Endpoint } from "./rpc-endpoint.ts";

/** As long as an endpoint that counts as down has failed at least. */
const OVER_MS = 4_000;

/**
 * Knows which methods fail at which endpoints, also if others succeed there: some providers do not
 * serve all methods.
 */
export function createMethodFailures() {
  /** Since when each method has failed at an endpoint, without a success. */
  const failingSince = new Map<Endpoint, Map<string, MonotonicTime>>();

  return {
    fail(endpoint: Endpoint, method: string): void {
      const methods = failingSince.get(endpoint) ?? new Map<string, MonotonicTime>();
      failingSince.set(endpoint, methods);
      if (!methods.has(method)) methods.set(method, monotonicNow());
    },

    succeed(endpoint: Endpoint, method: string): void {
      failingSince.get(endpoint)?.delete(method);
    },

    /** Whether the method has failed for some seconds. */
    isDown(endpoint: Endpoint, method: string): boolean {
      const since = failingSince.get(endpoint)?.get(method);
      return since !== undefined && msSince(since) >= OVER_MS;
    },
  };
}
