import type { GraphQLError, DocumentNode, ExecutionArgs, ExecutionResult, GraphQLSchema } from "graphql";
import { createYoga, type Plugin, type YogaInitialContext } from "graphql-yoga";
import { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import { describeSpan } from "../observability/tracing.ts";
import type { Context, UseCases } from "../resolvers/context.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { toCallerError } from "../resolvers/to-caller-error.ts";
import { badRequest, MAX_BODY_BYTES, respondErrors, respondGraphQLError, toGraphQLError } from "./errors.ts";
import { acceptsEvents, EVENT_STREAM } from "./event-stream.ts";
import { parseBody } from "./json-body.ts";
import { parseWithinLimits, validateWithinLimits } from "./limits/operation-limits.ts";
import { exceededByVariables } from "./limits/variables-limits.ts";
import { isJson, MUST_ACCEPT_JSON, preferredType, RESPONSE_TYPES, type ResponseType } from "./media-types.ts";
import { createOperationCache, type CachedOperation } from "./operation-cache.ts";
import { answerSubscriptions, type AcceptingContext } from "./subscriptions.ts";

/** How many `Accept` headers are cached. Each client sends one. */
const MAX_ACCEPT_HEADERS = 100;

export type GraphQLEndpoint = ReturnType<typeof createGraphQLEndpoint>;

/**
 * The GraphQL endpoint at `path`. Yoga answers requests, but `answerCached` bypasses it for operations that it has
 * parsed and validated before.
 */
export function createGraphQLEndpoint(needs: {
  schema: GraphQLSchema;
  path: string;
  useCases: UseCases;
  log: Logger;
}) {
  const { schema, useCases } = needs;
  const cache = createOperationCache(schema);
  const responseTypes = new Map<string, ResponseType | undefined>();

  /** The media type of the response to a caller with this `Accept` header; undefined if it allows none of ours. */
  function responseType(accept: string | null | undefined): ResponseType | undefined {
    const key = accept ?? "";
    const known = responseTypes.get(key);
    if (known || responseTypes.has(key)) return known;
    if (responseTypes.size === MAX_ACCEPT_HEADERS) responseTypes.clear();
    const type = preferredType(key, RESPONSE_TYPES);
    responseTypes.set(key, type);
    return type;
  }

  /**
   * Refuses a persisted query without its text, as Apollo Server does: Apollo's and urql's clients then send the text.
   * Also refuses an operation name of another type, which Yoga would not find, and too large variables.
   */
  const checkParams: Plugin = {
    onParams({ params: { query, operationName, variables, extensions } }) {
      const exceeded = exceededByVariables(variables);
      if (exceeded) throw exceeded;
      if (typeof (operationName ?? "") !== "string") throw badRequest("`operationName` must be a string.");
      if (query || !extensions?.persistedQuery) return;
      throw badRequest("PersistedQueryNotSupported", { code: "PERSISTED_QUERY_NOT_SUPPORTED" });
    },
  };

  /** Refuses a document or an operation that is too large. */
  const limit: Plugin<Context & YogaInitialContext> = {
    onParse({ setParseFn }) {
      setParseFn(parseWithinLimits);
    },
    onValidate({ context, setValidationFn }) {
      setValidationFn((_schema: GraphQLSchema, document: DocumentNode) =>
        validateWithinLimits(schema, document, context.params),
      );
    },
  };

  /** Takes an operation's cost from the rate limit before it runs, and converts its errors to the contract's. */
  const admitAndConvertErrors: Plugin<Context> = {
    async onExecute({ args }) {
      const { document, operationName, contextValue } = args as ExecutionArgs & {
        contextValue: Context & YogaInitialContext;
      };
      const { scope, params } = contextValue;
      scope.log.debug("parsed and validated an operation that was not cached");
      const key = [params.query ?? "", operationName ?? undefined] as const;
      const operation = cache.find(...key, document);
      const { cost, chainCalls } = operation?.weigh(params.variables) ?? { cost: 1, chainCalls: 0 };
      if (operation) traceOperation(operation);
      if (!canPass(cost, scope)) throw neverPasses(cost, scope);
      if (cost > 1) await scope.admit(cost);
      if (chainCalls > 0) await scope.takeChainCalls(chainCalls);
      if (operation) cache.add(...key, operation);
      (args as ExecutionArgs).hideSuggestions = true;
      return {
        onExecuteDone({ result, setResult }) {
          setResult(convertErrors(result as ExecutionResult, scope));
        },
      };
    },
    onResultProcess({ result, serverContext }) {
      recordFirstCode(result as ExecutionResult, (serverContext as unknown as Context).scope);
    },
  };

  const yoga = createYoga<Context & AcceptingContext>({
    schema,
    graphqlEndpoint: needs.path,
    plugins: [parseBody, checkParams, limit, answerSubscriptions(convertErrors), admitAndConvertErrors],
    maskedErrors: {
      // For errors outside an execution: requests that Yoga rejects, and RATE_LIMITED from onExecute.
      maskError: (error) => toGraphQLError(error, (cause) => toCallerError(cause, needs.log, new Set())),
    },
    maxRequestBodySize: MAX_BODY_BYTES,
    // Yoga's cache would keep documents of any size, even from callers that are then refused.
    parserAndValidationCache: false,
    graphiql: false,
    multipart: false,
    cors: false,
    landingPage: false,
    logging: false,
  });

  /** Answers a request whose caller has been admitted. */
  async function answer(request: Request, scope: RequestScope): Promise<Response> {
    const { method, headers } = request;
    const type = responseType(headers.get("accept"));
    const accepts = { json: type !== undefined, events: acceptsEvents(headers.get("accept")) };
    if (method === "POST" && !isJson(headers.get("content-type"))) {
      const message = "The body must be JSON, with the header `Content-Type: application/json`.";
      return respondErrors(415, { message }, type);
    }
    // Yoga checks this only after it has run the operation, even a mutation.
    if (!type && !accepts.events) {
      return respondErrors(406, { message: MUST_ACCEPT_JSON });
    }
    // Yoga ignores quality values and compares types case-sensitively, so it gets the result.
    headers.set("accept", type ?? RESPONSE_TYPES[1]);
    if (method === "POST") headers.set("content-type", "application/json");
    const response = await yoga.fetch(request, { useCases, scope, accepts });
    if (!type && response.headers.get("content-type") !== EVENT_STREAM) {
      // Yoga writes `Content-Type`, which `set` would not replace.
      const names = Object.fromEntries(
        [...response.headers].map(([name, value]) => [name.toLowerCase(), value]),
      );
      return new Response(await response.text(), {
        status: response.status,
        headers: { ...names, "content-type": RESPONSE_TYPES[0] },
      });
    }
    return response;
  }

  return {
    responseType,
    answer,

    /** Answers any request to the endpoint. Takes one request from the caller's rate limit before it reads the body. */
    async handle(request: Request, scope: RequestScope): Promise<Response> {
      try {
        await scope.admit(1);
        return await answer(request, scope);
      } catch (error) {
        if (!(error instanceof ContractError)) throw error;
        scope.recordCode(error.code);
        return respondGraphQLError(error, responseType(request.headers.get("accept")));
      }
    },

    /**
     * Answers the parameters of a request whose caller has been admitted, if their operation is cached and within the
     * limits. Otherwise runs nothing and returns undefined. Throws ContractError RATE_LIMITED or SERVICE_BUSY.
     */
    async answerCached(
      params: unknown,
      scope: RequestScope,
      { mayMutate }: { mayMutate: boolean },
    ): Promise<string | undefined> {
      if (!isPlain(params) || exceededByVariables(params.variables)) return undefined;
      const operation = cache.get(params.query, params.operationName ?? undefined);
      if (!operation || (operation.isMutation && !mayMutate)) return undefined;
      const { cost, chainCalls, isWithinLimits } = operation.weigh(params.variables);
      if (!isWithinLimits || !canPass(cost, scope)) return undefined;
      traceOperation(operation);
      if (cost > 1) await scope.admit(cost);
      if (chainCalls > 0) await scope.takeChainCalls(chainCalls);
      const result = await operation.run({ useCases, scope }, params.variables);
      if (result.data === undefined) return undefined;
      const converted = convertErrors(result, scope);
      recordFirstCode(converted, scope);
      return JSON.stringify(converted);
    },
  };
}

/** Whether an operation of this cost can pass the caller's rate limit at all. */
function canPass(cost: number, { rateLimit }: RequestScope): boolean {
  return rateLimit === undefined || cost <= rateLimit.limit;
}

/** Not RATE_LIMITED: clients would wait and try again. */
function neverPasses(cost: number, { rateLimit }: RequestScope): GraphQLError {
  return badRequest(
    `This request counts as ${cost} requests, and the rate limit is ${rateLimit!.limit}. Split it.`,
  );
}

/** OpenTelemetry's attributes for GraphQL servers, except the document, which may hold handles. */
function traceOperation({ type, name }: Pick<CachedOperation, "type" | "name">): void {
  describeSpan(() => ({ "graphql.operation.type": type, "graphql.operation.name": name }));
}

const PARAM_NAMES = new Set(["query", "variables", "operationName", "extensions"]);

interface PlainParams {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null;
  readonly operationName?: string | null;
}

/** Whether `params` has only a query, an operation name of word characters, and objects of variables and extensions. */
function isPlain(params: unknown): params is PlainParams {
  if (typeof params !== "object" || params === null || Array.isArray(params)) return false;
  for (const name in params) if (!PARAM_NAMES.has(name)) return false;
  const { query, variables, operationName = null, extensions } = params as Record<string, unknown>;
  return (
    typeof query === "string" &&
    isObjectOrAbsent(variables) &&
    isObjectOrAbsent(extensions) &&
    (operationName === null || (typeof operationName === "string" && /^\w+$/.test(operationName)))
  );
}

function isObjectOrAbsent(value: unknown): boolean {
  return value === undefined || (typeof value === "object" && !Array.isArray(value));
}

function convertErrors(result: ExecutionResult, scope: RequestScope): ExecutionResult {
  const { errors } = result;
  if (!errors) return result;
  const convert = (cause: unknown) => scope.toCallerError(cause);
  return { ...result, errors: errors.map((error) => toGraphQLError(error, convert)) };
}

function recordFirstCode({ errors }: ExecutionResult, scope: RequestScope): void {
  if (errors?.[0]) scope.recordCode(scope.signal.aborted ? "ABORTED" : String(errors[0].extensions.code));
}
