import { GraphQLError, type ExecutionResult } from "graphql";
import { errorHeaders, type ContractError, type Moved } from "../contract/contract-error.ts";
import type { Answer } from "../contract/http-messages.ts";
import { locationsOf } from "./source-locations.ts";
import { RESPONSE_TYPES, type ResponseType } from "./media-types.ts";

/** The code of an invalid request, unless GraphQL sets another. */
const BAD_REQUEST = "BAD_REQUEST";
/** Codes of valid requests whose operation cannot run. */
const OPERATION_CODES: readonly unknown[] = [
  "OPERATION_RESOLUTION_FAILURE",
  "PERSISTED_QUERY_NOT_SUPPORTED",
];

/** Longer messages are cut, because GraphQL's messages quote the caller's text. */
const MAX_MESSAGE_LENGTH = 500;

/**
 * The only suggestion that `hideSuggestions` leaves. Matched at the message's end, which never
 * quotes the caller.
 */
const SUGGESTION = / Did you mean "\w+ \{ \.\.\. \}"\?$/;

/**
 * GraphQL's errors about the document or its variables keep their message, shortened. Others go to
 * `toCallerError`.
 */
export function toGraphQLError(
  error: unknown,
  toCallerError: (error: unknown) => ContractError,
): GraphQLError {
  const source = error instanceof GraphQLError ? error : undefined;
  const cause = source?.originalError;
  if (source && (!cause || cause instanceof GraphQLError)) {
    const { extensions } = completeGraphQLError(source);
    // Yoga's `spec` sets the status to 200 in application/json. That is right only for errors of
    // the operation itself.
    if (extensions.http) extensions.http = { ...extensions.http, spec: isOperationError(source) };
    extensions.code ??= BAD_REQUEST;
    return source;
  }
  const callerError = toCallerError(cause ?? error);
  const { code, status } = callerError;
  const isRequestError =
    code === "RATE_LIMITED" || (code === "SERVICE_BUSY" && source?.path === undefined);
  const extensions = {
    ...extensionsOf(callerError),
    // Other errors concern one field, so they must not set the status.
    ...(isRequestError ? { http: { status, headers: errorHeaders(callerError) } } : {}),
  };
  if (!source) return new GraphQLError(callerError.message, { extensions });
  // Changed in place: an operation can have thousands of errors, and creating one takes 10 µs.
  return Object.assign(source, {
    message: callerError.message,
    extensions,
    locations: locationsOf(source),
    originalError: undefined,
  });
}

/**
 * An error of a field without its class. Yoga creates each GraphQLError again before it prints a
 * result, which takes 10 µs and loses the locations. It also finds the status of an invalid request
 * by the class, so errors of requests keep theirs.
 */
export function withoutClass(error: GraphQLError): GraphQLError {
  const { message, locations, path, extensions } = error;
  return { message, locations, path, extensions } as unknown as GraphQLError;
}

function extensionsOf({ code, retryAfterSeconds, extensions }: ContractError) {
  return { code, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }), ...extensions };
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

/** An error that refuses the whole request as invalid; `code` replaces BAD_REQUEST. */
export function badRequest(
  message: string,
  { status = 400, code = BAD_REQUEST }: { status?: number; code?: string | undefined } = {},
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status } } });
}

/**
 * Adds the locations to an error of graphql-js, shortens its message and removes its suggestion.
 */
export function completeGraphQLError(error: GraphQLError): GraphQLError {
  Object.assign(error, { locations: locationsOf(error) });
  error.message = error.message.replace(SUGGESTION, "");
  if (error.message.length > MAX_MESSAGE_LENGTH)
    error.message = `${error.message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
  return error;
}

/** What the errors of a request say that was refused as a whole: no collect of it ran. */
const NOTHING_RAN = { moved: "no" satisfies Moved };

/** A result as JSON, with the locations of errors: see {@link locationsOf}. */
export function printResult({ errors, data, extensions }: ExecutionResult): string {
  const errorList = errors?.map(({ message, locations, path, extensions }) => ({
    message,
    locations,
    path,
    // Only Yoga reads `http`, for the status.
    extensions: { ...extensions, ...(data === undefined && NOTHING_RAN), http: undefined },
  }));
  return JSON.stringify({ errors: errorList, data, extensions });
}

/** The answer to a request that is refused as a whole. */
export function answerGraphQLError(
  error: ContractError,
  type: ResponseType = RESPONSE_TYPES[0],
): Answer {
  const { status, message } = error;
  const headers = { "content-type": type, ...errorHeaders(error) };
  return {
    status,
    headers,
    body: JSON.stringify({
      errors: [{ message, extensions: { ...extensionsOf(error), ...NOTHING_RAN } }],
    }),
  };
}
