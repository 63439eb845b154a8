import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLError,
} from "graphql";
import { isAsyncIterable, type Plugin } from "graphql-yoga";
import { isErrorCode, rowOf } from "../contract/error-codes.ts";
import type { Context } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { badRequest } from "./errors.ts";
import { MUST_ACCEPT_JSON, preferredType } from "./media-types.ts";
import type { Run } from "./run-operation.ts";

export const EVENT_STREAM = "text/event-stream";

export function acceptsEvents(accept: string | undefined): boolean {
  return preferredType(accept, [EVENT_STREAM]) !== undefined;
}

/** Apollo's own link asks for a multipart response. */
const MUST_ACCEPT_EVENTS =
  "`Accept` must allow text/event-stream: a subscription is a stream of server-sent events. Apollo Client needs a link that uses graphql-sse; in urql, set `fetchSubscriptions`.";

/** The context that Yoga receives with a request. */
export interface ServerContext extends Context {
  /** The request's parameters, or why the request is invalid. */
  readonly given: object | GraphQLError;
  readonly accepts: { readonly json: boolean; readonly events: boolean };
}

/**
 * Answers subscriptions as server-sent events. If a stream cannot start, the response's status
 * shows an invalid request or a transient error, after which clients retry. Any other error is the
 * only event, followed by Yoga's `complete`. A running stream ends by a disconnect, without
 * `complete`, so that clients reconnect.
 */
export function answerSubscriptions(
  convertErrors: (result: ExecutionResult, scope: RequestScope) => ExecutionResult,
): Plugin<ServerContext> {
  return {
    onExecute({ args }) {
      if (!args.contextValue.accepts.json) throw badRequest(MUST_ACCEPT_JSON, { status: 406 });
    },
    onSubscribe({ args }) {
      const { scope, accepts } = args.contextValue;
      if (!accepts.events) throw badRequest(MUST_ACCEPT_EVENTS, { status: 406 });
      return {
        onSubscribeResult({ result, setResult }) {
          if (!isAsyncIterable(result)) {
            const failure = withStatus(convertErrors(result, scope));
            const hasStatus = failure.errors?.some(({ extensions }) => extensions.http);
            setResult(hasStatus ? failure : onlyEvent(failure));
            return;
          }
          return {
            onNext({ result, setResult }) {
              setResult(convertErrors(result, scope));
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

/** Runs the operation for each event of its field, as graphql-js's `subscribe` does. */
export function createSubscribe(run: Run) {
  return async (args: ExecutionArgs): Promise<AsyncIterable<ExecutionResult> | ExecutionResult> => {
    const events = await createSourceEventStream(args);
    if (!isAsyncIterable(events)) return events;
    const iterator = events[Symbol.asyncIterator]();
    // Not a generator, which could not end before the next event.
    const results: AsyncIterableIterator<ExecutionResult> = {
      async next() {
        const next = await iterator.next();
        if (next.done) return { done: true, value: undefined };
        const event: unknown = next.value;
        const value = await run(args.contextValue as Context, args.variableValues, event);
        return { done: false, value };
      },
      async return() {
        await iterator.return?.();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]: () => results,
    };
    return results;
  };
}

// eslint-disable-next-line @typescript-eslint/require-await -- Yoga sends async iterables
async function* onlyEvent(result: ExecutionResult) {
  yield result;
}

/** Sets the HTTP status of transient errors, and 400 for the errors of an invalid request. */
function withStatus(result: ExecutionResult): ExecutionResult {
  for (const { extensions } of result.errors ?? []) {
    const { code, retryAfterSeconds, http } = extensions;
    const status = typeof code === "string" && isErrorCode(code) ? rowOf(code).status : 400;
    if (http || (status !== 429 && status < 500 && code !== "BAD_REQUEST")) continue;
    const headers =
      typeof retryAfterSeconds === "number" ? { "retry-after": String(retryAfterSeconds) } : {};
    extensions.http = { status, headers, spec: false };
  }
  return result;
}
