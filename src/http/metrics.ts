import type { Registry } from "@prometheus-io/client";
import type { Handler } from "./edge.ts";

/** `/metrics`: what an operator can watch, as Prometheus reads it. */
export function createMetrics(registry: Registry): Handler {
  return async () =>
    new Response(await registry.metrics(), { headers: { "content-type": registry.contentType } });
}
