import {
  SpanStatusCode,
  trace,
  type SpanOptions,
  type Tracer,
  type TracerProvider,
} from "@opentelemetry/api";

/** The API's provider. It has a delegate once an SDK is registered. */
type ApiProvider = TracerProvider & { getDelegateTracer?(name: string): Tracer | undefined };

const NAME = "tributary";

/**
 * Runs `run` in a span that ends when `run` does and records whether it failed. Uses only OpenTelemetry's API: there
 * are no spans until an operator adds an SDK.
 */
export function inSpan<T>(name: string, options: SpanOptions, run: () => T): T {
  // Without an SDK, the provider's own tracer would create contexts for spans that nobody records.
  const provider: ApiProvider = trace.getTracerProvider();
  const tracer = provider.getDelegateTracer ? provider.getDelegateTracer(NAME) : provider.getTracer(NAME);
  if (!tracer) return run();
  return tracer.startActiveSpan(name, options, (span) => {
    const fail = (error: unknown): never => {
      // The code or name, never the message: other libraries' messages may contain URLs with keys.
      const { code, name } = error as { code?: unknown; name?: unknown };
      span.setAttribute("error.type", String(code ?? name));
      span.setStatus({ code: SpanStatusCode.ERROR }).end();
      throw error;
    };
    const succeed = <R>(result: R): R => {
      span.end();
      return result;
    };
    try {
      const result = run();
      return result instanceof Promise ? (result.then(succeed, fail) as T) : succeed(result);
    } catch (error) {
      return fail(error);
    }
  });
}
