import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  type Span,
  type SpanOptions,
} from "@opentelemetry/api";
import { codeOf, toError } from "./thrown.ts";

/**
 * A span's name and options. With the `headers` of a request, the span continues the caller's
 * trace, if any.
 */
export interface SpanDescription extends SpanOptions {
  readonly name: string;
  readonly headers?: Headers;
}

const NAME = "tributary";

/**
 * The only header that continues a trace. Others, such as `baggage`, could carry any text of a
 * stranger.
 */
const TRACE_HEADER = "traceparent";

/**
 * Runs `run` in a span, which records a failure. Until an operator adds an OpenTelemetry SDK,
 * nobody gets it.
 */
export function inSpan<T>(
  { name, headers, ...options }: SpanDescription,
  run: (span: Span) => Promise<T>,
): Promise<T> {
  const parent = headers
    ? propagation.extract(context.active(), { [TRACE_HEADER]: headers.get(TRACE_HEADER) })
    : context.active();
  return trace.getTracer(NAME).startActiveSpan(name, options, parent, async (span) => {
    try {
      return await run(span);
    } catch (error) {
      // The code or name, never the message: other libraries' messages may contain URLs with keys.
      markFailed(span, String(codeOf(error) ?? toError(error).name));
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Sets a span's status to error. `type` must be one of few values. */
export function markFailed(span: Span, type: string): void {
  span.setAttribute("error.type", type).setStatus({ code: SpanStatusCode.ERROR });
}

/** Runs work that no single request causes, so that its spans have no parent. */
export function withoutParent<T>(run: () => T): T {
  return context.with(ROOT_CONTEXT, run);
}
