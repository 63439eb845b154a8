import type { ExecutionResult } from "graphql";
import { preferredType } from "./media-types.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";

/** The media type of subscriptions. */
export const EVENT_STREAM = "text/event-stream; charset=utf-8";

/** Shorter than the minute after which proxies close idle connections. */
const COMMENT_MS = 15_000;
const COMMENT = ":\n\n";

const HEADERS = {
  "content-type": EVENT_STREAM,
  // nginx would wait for more data before it passes events on.
  "x-accel-buffering": "no",
};

/** Whether an `Accept` header allows server-sent events. */
export function acceptsEvents(accept: string | undefined): boolean {
  return preferredType(accept, [EVENT_STREAM]) !== undefined;
}

const encoder = new TextEncoder();

/**
 * The response to a subscription: its results as server-sent events, in the "distinct connections" mode of
 * https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md. A result is taken only when the caller has read
 * the one before. A stream never sends the event `complete`, after which clients would not reconnect.
 */
export function respondEvents(results: AsyncIterable<ExecutionResult>, stream: OpenStream): Response {
  const iterator = results[Symbol.asyncIterator]();
  let timer: NodeJS.Timeout | undefined;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // Sends the headers, and tells the caller that the stream is open.
      controller.enqueue(encoder.encode(COMMENT));
      timer = setInterval(() => {
        // Nothing while the caller does not read.
        if (controller.desiredSize! > 0) controller.enqueue(encoder.encode(COMMENT));
      }, COMMENT_MS).unref();
      const end = () => {
        clearInterval(timer);
        if (!isCancelled) controller.close();
      };
      if (stream.signal.aborted) end();
      else stream.signal.addEventListener("abort", end, { once: true });
    },
    async pull(controller) {
      const next = await iterator.next();
      if (next.done || stream.signal.aborted) return;
      controller.enqueue(encoder.encode(toEvent(next.value)));
      stream.sent();
    },
    cancel() {
      isCancelled = true;
      stream.close();
    },
  });
  return new Response(body, { headers: HEADERS });
}

/** The response to a subscription that fails for good: its only result, and the end. */
export function respondLastEvent(result: ExecutionResult): Response {
  return new Response(`${toEvent(result)}event: complete\ndata:\n\n`, { headers: HEADERS });
}

/** JSON has no line breaks, which would end the event. */
function toEvent(result: ExecutionResult): string {
  return `event: next\ndata: ${JSON.stringify(result)}\n\n`;
}
