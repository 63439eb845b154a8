import { SpanStatusCode, trace, type SpanOptions } from "@opentelemetry/api";

/** Uses only OpenTelemetry's API: spans are no-ops until an operator adds an SDK. */
const tracer = trace.getTracer("tributary");

/** Runs `run` in a span that ends when `run` does and records whether it failed. */
export function inSpan<T>(name: string, options: SpanOptions, run: () => T): T {
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
