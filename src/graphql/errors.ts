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

/** What the errors of a request say that was refused as a whole: no collect of it ran. */
const NOTHING_RAN = { moved: "no" satisfies Moved };

/** An error that refuses the whole request as invalid; `code` replaces BAD_REQUEST. */
export function badRequest(
  message: string,
  { status = 400, code = BAD_REQUEST }: { status?: number; code?: string | undefined } = {},
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status } } });
}

/**
 * An error as callers see it. It is no GraphQLError: an operation can have thousands of errors, and
 * Yoga would create each of those again.
 */
interface ShownError {
  readonly message: string;
  readonly locations: readonly SourceLocation[] | undefined;
  readonly path: GraphQLError["path"];
  readonly extensions: Readonly<Record<string, unknown>>;
}

interface Http {
  readonly status: number;
  readonly headers?: Record<string, string>;
}

/**
 * Converts the errors of a result to those that callers see. Also returns the response's status,
 * and its headers.
 */
export function showErrors(
  { data, errors = [] }: ExecutionResult,
  scope: RequestScope,
  type: string | undefined,
): { result: ExecutionResult; http: Http } {
  const hasRun = data !== undefined;
  const https: (Http | undefined)[] = [];
  const shown = errors.map((error) => {
    const [one, http] = showError(error, hasRun, scope);
    // GraphQL over HTTP: in application/json, errors of the operation itself have the status 200.
    const isOk = type === "application/json" && isOperationError(error);
    if (!isOk) https.push(http);
    return hasRun ? one : { ...one, extensions: { ...one.extensions, ...NOTHING_RAN } };
  });
  const worst = https.reduce(
    (one, other) => (other && other.status > (one?.status ?? 200) ? other : one),
    undefined,
  );
  return {
    result: {
      ...(hasRun && { data }),
      errors: shown as unknown as readonly GraphQLError[],
    },
    http: worst ?? { status: 200 },
  };
}

function showError(
  error: GraphQLError,
  hasRun: boolean,
  scope: RequestScope,
): [ShownError, Http | undefined] {
  const { path, originalError: cause } = error;
  const locations = locationsOf(error);
  // An error about the document or its variables.
  if (!cause || cause instanceof GraphQLError) {
    const { http, ...extensions } = error.extensions;
    const message = cut(error.message.replace(MORE_SUGGESTIONS, "$1?"));
    const status = hasRun ? undefined : { status: 400 };
    return [
      { message, locations, path, extensions: { code: BAD_REQUEST, ...extensions } },
      (http as Http | undefined) ?? status,
    ];
  }
  const callerError = scope.toCallerError(cause);
  const { code, status, message, retryAfterSeconds, extensions } = callerError;
  // Other errors concern one field, so they must not set the status.
  const isOfRequest = code === "RATE_LIMITED" || (!hasRun && (status === 429 || status >= 500));
  return [
    {
      ...{ message, locations, path },
      extensions: {
        code,
        ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
        ...extensions,
      },
    },
    isOfRequest ? { status, headers: errorHeaders(callerError) } : undefined,
  ];
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
