import {
  getOperationAST,
  GraphQLError,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
} from "graphql";
import { createYoga, type Plugin } from "graphql-yoga";
import { ContractError, ERROR_TABLE, errorHeaders, toCallerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { createRequestContext, type RequestContext, type Services } from "../resolvers/context.ts";
import { createGraphiQL, wantsGraphiQL } from "./graphiql.ts";
import { operationCost } from "./operation-cost.ts";

/** What the edge gives each request: the caller's budget, and a log that names the request. */
export interface GraphQLCall {
  /**
   * Takes `cost` requests out of the caller's budget, or throws RATE_LIMITED and takes none. Once more
   * with a higher cost it takes that in all.
   */
  readonly admit: (cost: number) => Promise<void>;
  readonly log: Logger;
}

/** The code of what is wrong with a request as such, where GraphQL has none of its own. */
const BAD_REQUEST = "BAD_REQUEST";

interface ServerContext {
  readonly call: GraphQLCall;
}

const MAX_BODY_BYTES = 100_000;

const JSON_BODY = /^application\/json *(;|$)/;
const ACCEPTABLE = ["*/*", "application/*", "application/json", "application/graphql-response+json"];

/** The GraphQL endpoint at `endpoint`, with GraphiQL for browsers. */
export function createGraphQL(needs: {
  schema: GraphQLSchema;
  endpoint: string;
  services: Services;
  log: Logger;
}) {
  const graphiql = createGraphiQL(needs.endpoint);
  const yoga = createYoga<ServerContext, RequestContext>({
    schema: needs.schema,
    graphqlEndpoint: needs.endpoint,
    context: ({ request }) => createRequestContext(needs.services, request),
    plugins: [admitAndExplain],
    maskedErrors: { maskError: (error) => toGraphQLError(error, needs.log) },
    maxRequestBodySize: MAX_BODY_BYTES,
    // It would keep documents of any size, of callers who may not even run them.
    parserAndValidationCache: false,
    graphiql: false,
    multipart: false,
    cors: false,
    landingPage: false,
    logging: false,
  });

  async function answer(request: Request, call: GraphQLCall): Promise<Response> {
    // Before anything of it is read; what cannot be read or is not valid counts like any request.
    await call.admit(1);
    return refuseForm(request) ?? yoga.fetch(request, { call });
  }

  return (request: Request, call: GraphQLCall): Promise<Response> =>
    wantsGraphiQL(request)
      ? graphiql(request)
      : answer(request, call).catch((error: unknown) => {
          if (error instanceof ContractError) return respondGraphQLError(error);
          throw error;
        });
}

function refuseForm({ method, headers }: Request): Response | undefined {
  if (method === "POST" && !JSON_BODY.test(headers.get("content-type") ?? "")) {
    return respondErrors(415, {
      message: "The body must be JSON, with the header Content-Type: application/json.",
    });
  }
  if (!isAcceptable(headers.get("accept") || "*/*")) {
    const message =
      "The answer is application/json or application/graphql-response+json: Accept must allow one of them.";
    return respondErrors(406, { message });
  }
  return undefined;
}

/** Yoga would find this out only after running the operation, be it a mutation. */
function isAcceptable(accept: string): boolean {
  return accept
    .toLowerCase()
    .split(",")
    .some((range) => {
      const [type, ...parameters] = range.split(";").map((part) => part.trim());
      const charset = parameters.find((parameter) => parameter.startsWith("charset=")) ?? "charset=utf-8";
      return ACCEPTABLE.includes(type!) && charset === "charset=utf-8";
    });
}

/** Takes an operation's cost before it runs, and shows its errors as the contract has them. */
const admitAndExplain: Plugin<ServerContext> = {
  async onExecute({ args }) {
    const { document, operationName, contextValue } = args as ExecutionArgs & { contextValue: ServerContext };
    const { call } = contextValue;
    const operation = getOperationAST(document, operationName);
    const cost = operation ? operationCost(document, operation) : 1;
    if (cost > 1) await call.admit(cost);
    return {
      onExecuteDone({ result, setResult }) {
        const { errors } = result as ExecutionResult;
        if (errors) setResult({ ...result, errors: errors.map((error) => toGraphQLError(error, call.log)) });
      },
    };
  },
};

/**
 * The error as callers see it. GraphQL's own errors, about the document or its variables, stay as they
 * are; a contract error shows its code; anything else is logged and shown as LOOKUP_FAILED, for the
 * collector makes COLLECT_FAILED of all that fails in a collect.
 */
function toGraphQLError(error: unknown, log: Logger): GraphQLError {
  if (error instanceof SyntaxError) return badRequest("`variables` and `extensions` must be JSON.");
  if (error instanceof RangeError) return badRequest("The document is nested too deeply.");
  const source = error instanceof GraphQLError ? error : undefined;
  const cause = source?.originalError;
  if (source && (!cause || cause instanceof GraphQLError)) {
    const { extensions } = source;
    // A request that is not even one of GraphQL is 400 in every media type; and Yoga shows its body here.
    if (extensions.code === BAD_REQUEST && extensions.http)
      extensions.http = { ...extensions.http, spec: false };
    delete extensions.originalError;
    extensions.code ??= BAD_REQUEST;
    return source;
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

function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: BAD_REQUEST, http: { status: 400 } } });
}

function respondGraphQLError(error: ContractError): Response {
  const { message, code, retryAfterSeconds } = error;
  return respondErrors(ERROR_TABLE[code].status, { message, code, retryAfterSeconds }, errorHeaders(error));
}

function respondErrors(
  status: number,
  { message, ...extensions }: { message: string; code?: string; retryAfterSeconds?: number | undefined },
  headers: Record<string, string> = {},
): Response {
  const error = { message, extensions: { code: BAD_REQUEST, ...extensions } };
  return Response.json({ errors: [error] }, { status, headers });
}
