import { setTimeout as sleep } from "node:timers/promises";
import type { ExecutionResult } from "graphql";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";

/** Proxies close silent connections, some after a minute. */
const COMMENT_MS = 12_000;
/**
 * From the last event to the end. graphql-sse only connects again if it waits for an event when
 * the response ends.
 */
const END_MS = 500;

const COMMENT = ":\n\n";
/** The operation has ended, so clients do not connect again. */
const COMPLETE = "event: complete\ndata:\n\n";

const toEvent = (result: ExecutionResult): string =>
  `event: next\ndata: ${JSON.stringify(result)}\n\n`;

/**
 * Repeats the last result with `extensions.retryAfterSeconds`, because every client can handle
 * another result. EventSource waits for the time of `retry`.
 */
function toLastEvent(last: ExecutionResult | undefined, retryMs: number): string {
  const extensions = { retryAfterSeconds: toRetryAfterSeconds(retryMs) };
  return `retry: ${retryMs}\n${last ? toEvent({ ...last, extensions }) : "\n"}`;
}

/**
 * Writes results as server-sent events, each when the previous one has been read. Yoga's own
 * function always ends with `complete`. That is for operations that have ended; if the service ends
 * the stream, the last event says when to subscribe again.
 */
export function toEventStream(
  results: AsyncIterable<ExecutionResult>,
  stream: OpenStream | undefined,
): ReadableStream<Uint8Array> {
  const iterator = results[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let last: ExecutionResult | undefined;
  let timer: NodeJS.Timeout | undefined;
  return new ReadableStream({
    start(controller) {
      const comment = encoder.encode(COMMENT);
      controller.enqueue(comment);
      timer = setInterval(() => {
        if (controller.desiredSize === null) clearInterval(timer);
        else if (controller.desiredSize > 0) controller.enqueue(comment);
      }, COMMENT_MS).unref();
    },
    async pull(controller) {
      const next = await iterator.next();
      if (!next.done) {
        last = next.value;
        controller.enqueue(encoder.encode(toEvent(last)));
        return;
      }
      clearInterval(timer);
      const retryMs = stream?.retryMs;
      controller.enqueue(
        encoder.encode(retryMs === undefined ? COMPLETE : toLastEvent(last, retryMs)),
      );
      if (retryMs !== undefined) await sleep(END_MS);
      controller.close();
    },
    async cancel() {
      clearInterval(timer);
      await iterator.return?.();
    },
  });
}
