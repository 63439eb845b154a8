import {
  getOperationAST,
  subscribe,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLError,
} from "graphql";
import { isAsyncIterable, type Plugin } from "graphql-yoga";
import { ERROR_CODES, rowOf, type ErrorCode } from "../contract/error-codes.ts";
import { describeSpan } from "../observability/tracing.ts";
import type { Context } from "../resolvers/context.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { badRequest } from "./errors.ts";
import { respondEvents, respondLastEvent } from "./event-stream.ts";
import { MUST_ACCEPT_JSON } from "./media-types.ts";

/** What Yoga gets with a request. */
export interface ServerContext extends Context {
  /** The request's parameters. */
  readonly given: object;
  /** The responses that its caller accepts. */
  readonly accepts: { readonly json: boolean; readonly events: boolean };
}

/**
 * Answers subscriptions with server-sent events, to callers who accept them. An error that may pass, or that of an
 * invalid request, is the response's status: clients try again after the first. Any other is the only event.
 */
export function answerSubscriptions(
  convertErrors: (result: ExecutionResult, scope: RequestScope) => ExecutionResult,
): Plugin<ServerContext> {
  const subscriptions = new WeakSet<RequestScope>();
  return {
    onExecute({ args }) {
      if (!(args.contextValue as ServerContext).accepts.json)
        throw badRequest(MUST_ACCEPT_JSON, { status: 406 });
    },
    onSubscribe({ args, setSubscribeFn }) {
      const { scope, accepts } = args.contextValue as ServerContext;
      if (!accepts.events)
        throw badRequest("`Accept` must allow text/event-stream: a subscription is a stream of events.", {
          status: 406,
        });
      traceSubscription(args);
      subscriptions.add(scope);
      setSubscribeFn(subscribe as (args: unknown) => unknown);
      return {
        onSubscribeResult({ result, setResult }) {
          if (!isAsyncIterable(result)) {
            setResult(withStatus(convertErrors(result, scope)));
            return;
          }
          return {
            onNext({ result, setResult }) {
              setResult(convertErrors(result, scope));
            },
          };
        },
      };
    },
    onResultProcess({ result, serverContext, setResultProcessor }) {
      const { scope } = serverContext as unknown as ServerContext;
      if (!subscriptions.has(scope)) return;
      if (isAsyncIterable(result)) {
        const results = result as AsyncIterable<ExecutionResult>;
        setResultProcessor(() => respondEvents(results, scope.stream!), "text/event-stream");
      } else if (!(result as ExecutionResult).errors?.some(({ extensions }) => extensions.http)) {
        setResultProcessor(() => respondLastEvent(result as ExecutionResult), "text/event-stream");
      }
    },
  };
}

function traceSubscription({ document, operationName }: ExecutionArgs): void {
  describeSpan(() => ({
    "graphql.operation.type": "subscription",
    "graphql.operation.name": getOperationAST(document, operationName)?.name?.value,
  }));
}

/** Gives errors that may pass their HTTP status, and those of an invalid request 400. */
function withStatus(result: ExecutionResult): ExecutionResult {
  for (const { extensions } of (result.errors ?? []) as GraphQLError[]) {
    const { code, retryAfterSeconds, http } = extensions as {
      code?: string;
      retryAfterSeconds?: number;
      http?: object;
    };
    const status = code !== undefined && code in ERROR_CODES ? rowOf(code as ErrorCode).status : 400;
    if (http || (status !== 429 && status < 500 && code !== "BAD_REQUEST")) continue;
    const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
    extensions.http = { status, headers, spec: false };
  }
  return result;
}
