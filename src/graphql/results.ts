import { subscribe, type ExecutionResult } from "graphql";
import { isAsyncIterable, processRegularResult, type Plugin } from "graphql-yoga";
import type { ServerContext } from "./context.ts";
import { showErrors } from "./errors.ts";
import { toEventStream } from "./event-stream.ts";
import { EVENT_STREAM } from "./media-types.ts";

/** Without `x-accel-buffering`, nginx would wait for more data before it passes events on. */
const EVENT_HEADERS = {
  "content-type": `${EVENT_STREAM}; charset=utf-8`,
  // Compressing proxies would hold events back until they have about a kilobyte.
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
};

/** Formats results. A request that was refused before its price was known counts as one. */
export function useResults(): Plugin<ServerContext, ServerContext> {
  return {
    /**
     * If a stream cannot start, the response's status shows an invalid request or a transient
     * error, after which clients retry. Any other error is the only event.
     */
    onSubscribe({ args, setSubscribeFn }) {
      const { scope, accepts } = args.contextValue;
      setSubscribeFn(subscribe);
      return {
        onSubscribeResult({ result, setResult }) {
          if (isAsyncIterable(result)) return;
          const { http } = showErrors(result, scope, accepts.result);
          if (http.status === 200) setResult(onlyEvent(result));
        },
      };
    },

    async onResultProcess({ result, setResult, setResultProcessor, serverContext }) {
      const { scope, accepts } = serverContext;
      if (!scope.rateLimit) await scope.admit(1);
      if (isAsyncIterable(result)) {
        const events = toEventStream(result as AsyncIterable<ExecutionResult>, scope);
        // Node's own response takes no event before the caller reads.
        const answer = () => new Response(events, { headers: { ...EVENT_HEADERS } });
        setResultProcessor(answer, EVENT_STREAM);
        return;
      }
      setResultProcessor(processRegularResult, accepts.result ?? "application/json");
      if (Array.isArray(result) || !result.errors) return;
      const { result: shown, http } = showErrors(result, scope, accepts.result);
      setResult({ ...shown, extensions: { http } });
      const code = shown.errors?.[0]?.extensions.code;
      if (typeof code === "string") scope.recordCode(code);
    },
  };
}

// eslint-disable-next-line @typescript-eslint/require-await -- Yoga sends async iterables
async function* onlyEvent<Result>(result: Result) {
  yield result;
}
