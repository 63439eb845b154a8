import { setTimeout as sleep } from "node:timers/promises";
import type { ExecutionResult } from "graphql";
import { toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { showErrors } from "./errors.ts";

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
 * Writes results as server-sent events, each when the previous one has been read. Yoga's own
 * function always ends with `complete`. That is for operations that have ended; if the service ends
 * the stream, the last event says when to subscribe again.
 */
export function toEventStream(
  results: AsyncIterable<ExecutionResult>,
  scope: RequestScope,
): ReadableStream<Uint8Array> {
  const iterator = results[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let last: ExecutionResult | undefined;
  let timer: NodeJS.Timeout | undefined;

  function close(): void {
    clearInterval(timer);
    scope.stream?.close();
  }

  return new ReadableStream({
    start(controller) {
      const comment = encoder.encode(COMMENT);
      controller.enqueue(comment);
      timer = setInterval(() => {
        if (controller.desiredSize === null) close();
        else if (controller.desiredSize > 0) controller.enqueue(comment);
      }, COMMENT_MS).unref();
    },
    async pull(controller) {
      const send = (text: string) => {
        controller.enqueue(encoder.encode(text));
      };
      const next = await iterator.next();
      if (!next.done) {
        last = next.value.errors ? showErrors(next.value, scope).result : next.value;
        send(toEvent(last));
        return;
      }
      close();
      const retryMs = scope.stream?.retryMs;
      if (retryMs === undefined) {
        send(COMPLETE);
      } else {
        // Repeats the last result, because every client can handle another result. EventSource
        // waits for the time of `retry`.
        const extensions = { retryAfterSeconds: toRetryAfterSeconds(retryMs) };
        send(`retry: ${retryMs}\n${last ? toEvent({ ...last, extensions }) : "\n"}`);
        await sleep(END_MS);
      }
      controller.close();
    },
    async cancel() {
      close();
      await iterator.return?.();
    },
  });
}
