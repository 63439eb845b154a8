import { Response } from "@whatwg-node/fetch";
import { Counter, Gauge, Histogram, type Registry } from "@prometheus-io/client";
import { COMMIT, VERSION } from "../observability/version.ts";
import type { Reads } from "../resolvers/loaders.ts";

/** The label of a request. `other`: requests that do not count against the rate limit. */
export type Operation = "lookup" | "collect" | "graphql" | "other";

export type RequestMetrics = ReturnType<typeof createRequestMetrics>;

export function createRequestMetrics(registry: Registry) {
  const requests = new Counter({
    name: "tributary_requests_total",
    help: "Requests answered, by operation and code: OK, an error code of the contract (for GraphQL that of the first error), a code such as BAD_REQUEST for invalid GraphQL, or ABORTED if the caller disconnected.",
    labelNames: ["operation", "code"],
    registers: [registry],
  });
  // Starts at 0, so that Prometheus sees the first burst as an increase.
  requests.inc({ operation: "lookup", code: "SERVICE_BUSY" }, 0);
  const durations = new Histogram({
    name: "tributary_request_duration_seconds",
    help: "Time until the response was ready, by operation.",
    labelNames: ["operation"],
    // In seconds.
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  const lookups = new Counter({
    name: "tributary_account_cache_total",
    help: "Accounts looked up for requests: found in this process's cache (hit) or not (miss).",
    labelNames: ["result"],
    registers: [registry],
  });

  return {
    answered(
      operation: Operation,
      code: string,
      durationMs: number,
      { cached: cachedCount, social }: Reads,
    ): void {
      lookups.inc({ result: "hit" }, cachedCount);
      lookups.inc({ result: "miss" }, social);
      requests.inc({ operation, code });
      durations.observe({ operation }, durationMs / 1000);
    },
  };
}

/** `/metrics`, in the format of Prometheus. */
export function createMetricsHandler(registry: Registry): () => Promise<Response> {
  const build = new Gauge({
    name: "tributary_build_info",
    help: "Always 1; the labels are the service's version and commit.",
    labelNames: ["version", "commit"],
    registers: [registry],
  });
  build.set({ version: VERSION, commit: COMMIT }, 1);
  return async () =>
    new Response(await registry.metrics(), { headers: { "content-type": registry.contentType } });
}
