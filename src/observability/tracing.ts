import { SpanStatusCode, trace, type SpanOptions, type Tracer } from "@opentelemetry/api";

/** The API's own provider. Its class is deprecated, so a later version may lack the method. */
interface ProxyProvider {
  getTracer(name: string): Tracer;
  /** Undefined without an SDK. */
  getDelegateTracer?(name: string): Tracer | undefined;
}

/**
 * Runs `run` in a span that ends when `run` does and records whether it failed. Uses only OpenTelemetry's API: there
 * are no spans until an operator adds an SDK.
 */
export function inSpan<T>(name: string, options: SpanOptions, run: () => T): T {
  const provider: ProxyProvider = trace.getTracerProvider();
  // Without an SDK the proxy's own tracer would create contexts for spans that nobody records.
  const tracer = provider.getDelegateTracer
    ? provider.getDelegateTracer("tributary")
    : provider.getTracer("tributary");
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
