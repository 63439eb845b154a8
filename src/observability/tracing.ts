import { SpanStatusCode, trace, type SpanOptions } from "@opentelemetry/api";

/** Uses OpenTelemetry's API only: spans go nowhere until an operator adds an SDK. */
const tracer = trace.getTracer("tributary");

/** Runs `run` in a span that ends with it and records whether it failed. */
export function inSpan<T>(name: string, options: SpanOptions, run: () => T): T {
  return tracer.startActiveSpan(name, options, (span) => {
    const fail = (error: unknown): never => {
      // The code or name, never the message: messages of other libraries may contain addresses with keys.
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
