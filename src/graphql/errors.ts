import { GraphQLError, type ExecutionResult, type SourceLocation } from "graphql";
import { errorHeaders, type Moved } from "../contract/contract-error.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

/** The code of an invalid request, unless GraphQL sets another. */
const BAD_REQUEST = "BAD_REQUEST";
/** Codes of valid requests whose operation cannot run. */
const OPERATION_CODES: readonly unknown[] = [
  "OPERATION_RESOLUTION_FAILURE",
  "PERSISTED_QUERY_NOT_SUPPORTED",
];

/** Longer messages are cut, because GraphQL's messages quote the caller's text. */
const MAX_MESSAGE_LENGTH = 500;
/** All suggestions but the first. Only graphql-js writes a message's end. */
const MORE_SUGGESTIONS = /( Did you mean [a-z ]*"[^"]+")(?:,? (?:or )?"[^"]+")+\?$/;

/** An error that refuses the whole request as invalid; `code` replaces BAD_REQUEST. */
export function badRequest(
  message: string,
  { status = 400, code = BAD_REQUEST }: { status?: number; code?: string | undefined } = {},
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status } } });
}

interface Http {
  readonly status: number;
  readonly headers?: Record<string, string>;
}

/**
 * Converts the errors of a result to those that callers see. Also returns the response's status,
 * and its headers. The errors are no GraphQLErrors: an operation can have thousands of errors, and
 * Yoga would create each of those again.
 */
export function showErrors(
  { data, errors = [] }: ExecutionResult,
  scope: RequestScope,
  type?: string,
): { result: ExecutionResult; http: Http } {
  const hasRun = data !== undefined;
  const https: (Http | undefined)[] = [];
  const shown = errors.map((error) => {
    const { message, extensions, http } = describeError(error, hasRun, scope);
    // GraphQL over HTTP: in application/json, errors of the operation itself have the status 200.
    if (type !== "application/json" || !isOperationError(error)) https.push(http);
    return {
      ...{ message, locations: locationsOf(error), path: error.path },
      // No collect of a request ran that was refused as a whole.
      extensions: { ...extensions, ...(!hasRun && { moved: "no" satisfies Moved }) },
    };
  });
  return {
    result: {
      ...(hasRun && { data }),
      errors: shown as unknown as readonly GraphQLError[],
    },
    http: https.find((each) => each) ?? { status: 200 },
  };
}

function describeError(
  error: GraphQLError,
  hasRun: boolean,
  scope: RequestScope,
): { message: string; extensions: object; http: Http | undefined } {
  const { originalError: cause } = error;
  // An error about the document or its variables.
  if (!cause || cause instanceof GraphQLError) {
    const { http, ...extensions } = error.extensions as { http?: Http };
    return {
      message: cut(error.message.replace(MORE_SUGGESTIONS, "$1?")),
      extensions: { code: BAD_REQUEST, ...extensions },
      http: http ?? (hasRun ? undefined : { status: 400 }),
    };
  }
  const callerError = scope.toCallerError(cause);
  const { code, status, message, retryAfterSeconds, extensions } = callerError;
  // Other errors concern one field, so they must not set the status.
  const isOfRequest = code === "RATE_LIMITED" || (!hasRun && (status === 429 || status >= 500));
  return {
    message,
    extensions: { code, retryAfterSeconds, ...extensions },
    http: isOfRequest ? { status, headers: errorHeaders(callerError) } : undefined,
  };
}

const cut = (message: string): string =>
  message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…` : message;

/** The parser knows the lines of tokens; graphql-js would count them for each error. */
function locationsOf({ nodes, locations }: GraphQLError): readonly SourceLocation[] | undefined {
  const starts = nodes?.flatMap(({ loc }) => (loc ? [loc.startToken] : []));
  if (!starts || starts.length === 0) return locations;
  return starts.map(({ line, column }) => ({ line, column }));
}

/**
 * Whether GraphQL cannot run the operation: its text, its name or its variables are wrong, or the
 * text is missing.
 */
function isOperationError({ extensions, locations, path }: GraphQLError): boolean {
  return (
    (locations !== undefined && path === undefined) || OPERATION_CODES.includes(extensions.code)
  );
}
