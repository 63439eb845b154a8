import { GraphQLError } from "graphql";
import { errorHeaders, type ContractError } from "../contract/contract-error.ts";

/** The code of an invalid request, where GraphQL has none of its own. */
const BAD_REQUEST = "BAD_REQUEST";

/** The largest GraphQL request body. */
export const MAX_BODY_BYTES = 100_000;

const YOGA_BODY_TOO_LARGE = "REQUEST_ENTITY_TOO_LARGE";

/** GraphQL's own messages repeat the caller's text. */
const MAX_MESSAGE_LENGTH = 500;

/** The suggestion that `hideSuggestions` leaves. It ends the message, and no caller's text can end like it. */
const SUGGESTION = / Did you mean "\w+ \{ \.\.\. \}"\?$/;

/**
 * The error that callers see. GraphQL's own errors about the document or its variables keep their message,
 * without suggestions and shortened. Any other error becomes the ContractError of `toCallerError`.
 */
export function toGraphQLError(
  error: unknown,
  toCallerError: (error: unknown) => ContractError,
): GraphQLError {
  if (error instanceof SyntaxError) return badRequest("`variables` and `extensions` must be JSON.");
  const source = error instanceof GraphQLError ? error : undefined;
  const cause = source?.originalError;
  if (source && (!cause || cause instanceof GraphQLError)) {
    const { extensions } = source;
    if (extensions.code === YOGA_BODY_TOO_LARGE) {
      return badRequest(`The body is too large: the maximum is ${MAX_BODY_BYTES} bytes.`, 413);
    }
    // A request that is not GraphQL is 400 in every media type. Yoga also shows the request's body here.
    if (extensions.code === BAD_REQUEST && extensions.http)
      extensions.http = { ...extensions.http, spec: false };
    delete extensions.originalError;
    extensions.code ??= BAD_REQUEST;
    return shorten(source);
  }
  const shown = toCallerError(cause ?? error);
  const { code, status, retryAfterSeconds } = shown;
  return new GraphQLError(shown.message, {
    nodes: source?.nodes ?? null,
    source: source?.source ?? null,
    positions: source?.positions ?? null,
    path: source?.path ?? null,
    extensions: {
      code,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      // Only this error refuses the whole request. A status on any other would speak for its siblings.
      ...(code === "RATE_LIMITED" ? { http: { status, headers: errorHeaders(shown) } } : {}),
    },
  });
}

/** An error that refuses the whole request as invalid. */
export function badRequest(message: string, status = 400): GraphQLError {
  return new GraphQLError(message, { extensions: { code: BAD_REQUEST, http: { status } } });
}

/** One of GraphQL's own errors, without its suggestion and shortened. */
export function shorten(error: GraphQLError): GraphQLError {
  error.message = error.message.replace(SUGGESTION, "");
  if (error.message.length > MAX_MESSAGE_LENGTH)
    error.message = `${error.message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
  return error;
}

/** The response to a request that is refused as a whole. */
export function respondGraphQLError(error: ContractError): Response {
  const { status, message, code, retryAfterSeconds } = error;
  return respondErrors(status, { message, code, retryAfterSeconds }, errorHeaders(error));
}

/** A response with one error, BAD_REQUEST unless it has a code. */
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
