import { GraphQLError } from "graphql";
import type { ContractError } from "../contract/errors.ts";
import { ERROR_TABLE, errorHeaders, toCallerError } from "../contract/errors.ts";
import type { Logger } from "../observability/log.ts";

/** The code of what is wrong with a request as such, where GraphQL has none of its own. */
const BAD_REQUEST = "BAD_REQUEST";

/** Of a GraphQL request. */
export const MAX_BODY_BYTES = 100_000;

const YOGA_BODY_TOO_LARGE = "REQUEST_ENTITY_TOO_LARGE";

/** Of GraphQL's own messages, which repeat what the caller has written. */
const MAX_MESSAGE_LENGTH = 500;

/** What `hideSuggestions` leaves: it ends the message, and no message ends so with a caller's words. */
const SUGGESTION = / Did you mean "\w+ \{ \.\.\. \}"\?$/;

/**
 * The error as callers see it. GraphQL's own errors, about the document or its variables, stay as they
 * are, but for suggestions and length; a contract error shows its code; anything else is logged and shown
 * as LOOKUP_FAILED, for the collector makes COLLECT_FAILED of all that fails in a collect.
 */
export function toGraphQLError(error: unknown, log: Logger): GraphQLError {
  if (error instanceof SyntaxError) return badRequest("`variables` and `extensions` must be JSON.");
  const source = error instanceof GraphQLError ? error : undefined;
  const cause = source?.originalError;
  if (source && (!cause || cause instanceof GraphQLError)) {
    const { extensions } = source;
    if (extensions.code === YOGA_BODY_TOO_LARGE) {
      return badRequest(`The body may have at most ${MAX_BODY_BYTES} bytes; this one has more.`, 413);
    }
    // A request that is not even one of GraphQL is 400 in every media type; and Yoga shows its body here.
    if (extensions.code === BAD_REQUEST && extensions.http)
      extensions.http = { ...extensions.http, spec: false };
    delete extensions.originalError;
    extensions.code ??= BAD_REQUEST;
    return shorten(source);
  }
  const shown = toCallerError(cause ?? error, log);
  const { code, retryAfterSeconds } = shown;
  return new GraphQLError(shown.message, {
    nodes: source?.nodes ?? null,
    source: source?.source ?? null,
    positions: source?.positions ?? null,
    path: source?.path ?? null,
    extensions: {
      code,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      // The one error that refuses the whole request; a status on any other would speak for its neighbours.
      ...(code === "RATE_LIMITED"
        ? { http: { status: ERROR_TABLE[code].status, headers: errorHeaders(shown) } }
        : {}),
    },
  });
}

/** An error that refuses a request as such, and all of it. */
export function badRequest(message: string, status = 400): GraphQLError {
  return new GraphQLError(message, { extensions: { code: BAD_REQUEST, http: { status } } });
}

/** One of GraphQL's own errors without its suggestion, and cut when it is long. */
export function shorten(error: GraphQLError): GraphQLError {
  error.message = error.message.replace(SUGGESTION, "");
  if (error.message.length > MAX_MESSAGE_LENGTH)
    error.message = `${error.message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
  return error;
}

/** The answer to a request that is refused as a whole. */
export function respondGraphQLError(error: ContractError): Response {
  const { message, code, retryAfterSeconds } = error;
  return respondErrors(ERROR_TABLE[code].status, { message, code, retryAfterSeconds }, errorHeaders(error));
}

/** An answer with one error, BAD_REQUEST unless it has a code. */
export function respondErrors(
  status: number,
  { message, ...extensions }: { message: string; code?: string; retryAfterSeconds?: number | undefined },
  headers: Record<string, string> = {},
): Response {
  const error = { message, extensions: { code: BAD_REQUEST, ...extensions } };
  return new Response(JSON.stringify({ errors: [error] }), {
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
  });
}
