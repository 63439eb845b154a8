import { addMs, monotonicNow, msUntil, type MonotonicTime } from "../../time/monotonic.ts";
import type { Endpoint } from "./rpc-endpoint.ts";

/**
 * An endpoint that always lies spoils one transaction in this time. An honest one, whose
 * transaction expired in congestion, loses its place for as long.
 */
const DOUBT_MS = 600_000;

export type EndpointDoubt = ReturnType<typeof createEndpointDoubt>;

/**
 * Remembers the endpoint whose blockhash last led to a transaction that did not land. It is asked
 * last for what prepares the next transactions, for ten minutes: only the order changes.
 */
export function createEndpointDoubt() {
  let doubt: { readonly endpoint: Endpoint; readonly endsAt: MonotonicTime } | undefined;
  return {
    cast(endpoint: Endpoint): void {
      doubt = { endpoint, endsAt: addMs(monotonicNow(), DOUBT_MS) };
    },

    endpoint: (): Endpoint | undefined =>
      doubt && msUntil(doubt.endsAt) > 0 ? doubt.endpoint : undefined,
  };
}
