import { SpanStatusCode, trace, type SpanOptions } from "@opentelemetry/api";

/** Through OpenTelemetry's API alone: spans go nowhere until an operator brings an SDK. */
const tracer = trace.getTracer("tributary");

/** Runs something in a span of its own, which ends with it and says whether it failed. */
export function inSpan<T>(name: string, options: SpanOptions, run: () => T): T {
  return tracer.startActiveSpan(name, options, (span) => {
    const fail = (error: unknown): never => {
      // By its code and never by its text: messages of other people's errors may quote addresses.
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
