import type { GraphQLParams, Plugin } from "graphql-yoga";
import { isJson, type ReadBody } from "../contract/http-messages.ts";
import { isObject, parseJsonBody } from "../contract/parse-json.ts";
import { MAX_WALLETS } from "../schema/field-costs.ts";
import type { ServerContext } from "./context.ts";
import { badRequest } from "./errors.ts";
import { MUST_ACCEPT } from "./media-types.ts";

const MAX_BODY_BYTES = 100_000;
const BODY_TOO_LARGE = `The body is too large: the maximum is ${MAX_BODY_BYTES} bytes.`;
/**
 * The most values in `variables`, at all depths. A hundred entries to collect, with a coin each,
 * have 401.
 */
const MAX_VALUES = 1_000;
/** The most members of an object in `variables`. `CollectInput` has two. */
const MAX_MEMBERS = 5;

/** Reads and limits a request's parameters. */
export function useParams(): Plugin<object, ServerContext> {
  return {
    onRequestParse({ request, requestParser, setRequestParser, serverContext }) {
      const { headers } = request;
      if (headers.get("upgrade")?.toLowerCase() === "websocket")
        throw badRequest(`There are no websockets. ${MUST_ACCEPT}`);
      if (request.method === "GET")
        setRequestParser(() => {
          try {
            return requestParser!(request);
          } catch {
            throw badRequest("`variables` and `extensions` must be JSON.");
          }
        });
      else if (isJson(headers.get("content-type") ?? ""))
        setRequestParser(() => readParams(serverContext.scope.readBody));
      else
        throw badRequest(
          "The body must be JSON, with the header `Content-Type: application/json`.",
          { status: 415 },
        );
    },

    /** Clients send other members too, such as Relay's `id`. */
    onParams({ params: { query, extensions, ...params }, setParams }) {
      const operationName: unknown = params.operationName ?? "";
      if (typeof operationName !== "string") throw badRequest("`operationName` must be a string.");
      // The message of Apollo Server: Apollo's and urql's clients then send the query's text.
      if (!query && extensions?.persistedQuery)
        throw badRequest("PersistedQueryNotSupported", { code: "PERSISTED_QUERY_NOT_SUPPORTED" });
      const variables = isNone(params.variables) ? undefined : params.variables;
      limitVariables(variables);
      const name = operationName || undefined;
      setParams({ query, variables, operationName: name, extensions } as GraphQLParams);
    },
  };
}

/** PHP encodes an empty array as a list, and forms send an empty text. */
const isNone = (variables: unknown): boolean =>
  variables === "" || (Array.isArray(variables) && variables.length === 0);

/** Yoga would take other media types, which web pages can send without a preflight. */
async function readParams(readBody: ReadBody): Promise<object> {
  const body = await readBody(MAX_BODY_BYTES);
  if (body === "too large") throw badRequest(BODY_TOO_LARGE, { status: 413 });
  const value = parseJsonBody(body);
  if (typeof value === "object" && value !== null) return value;
  throw badRequest("The body must be a JSON object, in UTF-8 and not compressed.");
}

/** Invalid variables could take seconds: GraphQL prints an object once per unknown member. */
function limitVariables(variables: unknown): void {
  const values = [variables];
  for (const value of values) {
    // GraphQL takes a number for an ID: `node` would return another account's wallet.
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      throw badRequest(
        "A number in `variables` is so large that it has lost digits. Send ids as strings.",
      );
    if (typeof value !== "object" || value === null) continue;
    const members: unknown[] = Object.values(value);
    if (members.length > MAX_MEMBERS && value !== variables && isObject(value))
      throw badRequest(
        `Too many members of an object in \`variables\`: the maximum is ${MAX_MEMBERS}.`,
      );
    if (values.length + members.length > 1 + MAX_VALUES)
      throw badRequest(
        `Too many values in \`variables\`: the maximum is ${MAX_VALUES}. A request takes at most ${MAX_WALLETS} wallets.`,
      );
    values.push(...members);
  }
}
