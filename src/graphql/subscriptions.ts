import { subscribe } from "graphql";
import { isAsyncIterable, type Plugin } from "graphql-yoga";
import type { ServerContext } from "./context.ts";
import { showErrors } from "./errors.ts";

/**
 * Answers subscriptions as server-sent events. If a stream cannot start, the response's status
 * shows an invalid request or a transient error, after which clients retry. Any other error is the
 * only event, followed by `complete`. How a running stream ends: see {@link toEventStream}.
 */
export function useSubscriptions(): Plugin<ServerContext> {
  return {
    onSubscribe({ args, setSubscribeFn }) {
      const { scope, accepts } = args.contextValue;
      setSubscribeFn(subscribe);
      return {
        onSubscribeResult({ result, setResult }) {
          if (!isAsyncIterable(result)) {
            const { result: failure, http } = showErrors(result, scope, accepts.result);
            if (http.status === 200) setResult(onlyEvent(failure));
            return;
          }
          return {
            onNext({ result, setResult }) {
              if (result.errors) setResult(showErrors(result, scope, accepts.result).result);
            },
            onEnd() {
              scope.stream?.close();
            },
          };
        },
      };
    },
  };
}

// eslint-disable-next-line @typescript-eslint/require-await -- Yoga sends async iterables
async function* onlyEvent<Result>(result: Result) {
  yield result;
}
