import {
  execute,
  GraphQLError,
  OperationTypeNode,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
} from "graphql";
import { createYoga, isAsyncIterable, type Plugin, type YogaInitialContext } from "graphql-yoga";
import { LRUCache } from "lru-cache";
import type { ContractError } from "../contract/contract-error.ts";
import { isJson, type Answer, type HttpRequest } from "../contract/http-messages.ts";
import type { Logger } from "../observability/log.ts";
import type { Context, UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { toCallerError } from "../resolvers/to-caller-error.ts";
import { createDocuments, findOperation, type Document, type Operation } from "./documents.ts";
import {
  answerGraphQLError,
  badRequest,
  completeGraphQLError,
  printResult,
  toGraphQLError,
  withoutClass,
} from "./errors.ts";
import { exceededLimit } from "./limits/document-limits.ts";
import type { OperationSize } from "./limits/operation-size.ts";
import {
  MUST_ACCEPT_JSON,
  preferredType,
  RESPONSE_TYPES,
  type ResponseType,
} from "./media-types.ts";
import { areParams, readParams } from "./params.ts";
import {
  acceptsEvents,
  answerSubscriptions,
  createSubscribe,
  EVENT_STREAM,
  type ServerContext,
} from "./subscriptions.ts";

/** How many `Accept` headers are cached. A client always sends the same one. */
const MAX_ACCEPT_HEADERS = 100;

/** Without `x-accel-buffering`, nginx would wait for more data before it passes events on. */
const EVENT_HEADERS = {
  "content-type": `${EVENT_STREAM}; charset=utf-8`,
  // Compressing proxies would hold events back until they have about a kilobyte.
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
};

/**
 * Yoga answers requests whose document is new, and all that are not valid. `run-operation.ts` runs
 * every operation. One whose document is cached needs nothing else of Yoga, which would take most
 * of the time.
 */
export function createGraphQLEndpoint(needs: {
  schema: GraphQLSchema;
  path: string;
  useCases: UseCases;
  log: Logger;
}) {
  const { schema, useCases } = needs;
  const documents = createDocuments(schema);
  /** What Yoga passes on only as a syntax tree. */
  const parsed = new WeakMap<DocumentNode, Document>();
  const responseTypes = new LRUCache<string, ResponseType | "none", undefined>({
    max: MAX_ACCEPT_HEADERS,
    memoMethod: (accept) => preferredType(accept, RESPONSE_TYPES) ?? "none",
  });

  function documentOf(node: DocumentNode): Document {
    const document = parsed.get(node);
    if (!document) throw new Error("Yoga passes on a document that it has not parsed");
    return document;
  }

  /** The valid document that Yoga passes on, and the operation that the request selects. */
  function selectedIn({ document: node, operationName }: ExecutionArgs) {
    const document = documentOf(node);
    return { document, operation: findOperation(document, operationName) };
  }

  /**
   * The media type of the response to a caller with this `Accept` header; undefined if it allows
   * none of ours.
   */
  function responseType(accept: string | undefined): ResponseType | undefined {
    const type = responseTypes.memo(accept ?? "");
    return type === "none" ? undefined : type;
  }

  const plugin: Plugin<Context & YogaInitialContext, ServerContext> = {
    onRequestParse({ serverContext, setRequestParser }) {
      setRequestParser(() => {
        const { given } = serverContext;
        if (given instanceof GraphQLError) throw given;
        return given;
      });
    },
    onParams({ params: { query, operationName, extensions } }) {
      // Yoga would answer that it knows no operation of this name.
      if (typeof (operationName ?? "") !== "string")
        throw badRequest("`operationName` must be a string.");
      if (query || !extensions?.persistedQuery) return;
      // The message of Apollo Server: Apollo's and urql's clients then send the query's text.
      throw badRequest("PersistedQueryNotSupported", { code: "PERSISTED_QUERY_NOT_SUPPORTED" });
    },
    onParse({ setParseFn }) {
      setParseFn((text: string) => {
        const document = documents.cached(text) ?? documents.parse(text);
        parsed.set(document.node, document);
        return document.node;
      });
    },
    onValidate({ context, setValidationFn }) {
      const { operationName, variables } = context.params;
      setValidationFn((_schema: GraphQLSchema, node: DocumentNode) =>
        documents.validate(documentOf(node), operationName, variables).map(completeGraphQLError),
      );
    },
    /**
     * Takes an operation's cost from the rate limit before the operation runs. Converts errors to
     * the contract's.
     */
    async onExecute({ args, setExecuteFn }) {
      const { contextValue } = args;
      const { scope, params } = contextValue;
      scope.log.debug("parsed and validated an operation that was not cached");
      const { document, operation } = selectedIn(args);
      if (operation) {
        await admit(operation.measure(params.variables), scope);
        documents.add(document);
        setExecuteFn(() => operation.run(contextValue, params.variables));
      }
      // Says why there is none.
      else setExecuteFn(execute);
      return {
        onExecuteDone({ result, setResult }) {
          if (!isAsyncIterable(result)) setResult(convertErrors(result, scope));
        },
      };
    },
    onSubscribe({ args, setSubscribeFn }) {
      const { document, operation } = selectedIn(args);
      documents.add(document);
      if (operation) setSubscribeFn(createSubscribe(operation.run));
    },
    onResultProcess({ result, serverContext }) {
      if (isAsyncIterable(result) || Array.isArray(result)) return;
      withPrint(result);
      recordFirstCode(result, serverContext.scope);
    },
  };

  const yoga = createYoga<ServerContext>({
    schema,
    graphqlEndpoint: needs.path,
    plugins: [answerSubscriptions(convertErrors), plugin],
    maskedErrors: {
      // For errors outside an execution: requests that Yoga rejects, and the errors that
      // `onExecute` throws.
      maskError: (error) =>
        error instanceof Error
          ? toGraphQLError(error, (cause) => toCallerError(cause, needs.log, new Set()))
          : // An error of a field, which has been converted.
            (error as Error),
    },
    // No limit here: `readParams` has already read the body.
    maxRequestBodySize: false,
    // Yoga's cache would keep documents of any size, even from callers that are then refused.
    parserAndValidationCache: false,
    graphiql: false,
    multipart: false,
    cors: false,
    landingPage: false,
    fetchAPI: { Response, ReadableStream },
    logging: false,
  });

  /** Answers requests whose document is not cached, and requests that are not valid. */
  async function answerWithYoga(
    { method, headers }: HttpRequest,
    params: object,
    type: ResponseType | undefined,
    scope: RequestScope,
  ): Promise<Answer> {
    // Yoga ignores quality values and compares types case-sensitively, so it gets the negotiated
    // type.
    const accept = `${type ?? RESPONSE_TYPES[1]}, ${EVENT_STREAM}`;
    const request = new Request(`http://tributary${needs.path}`, { method, headers: { accept } });
    const accepts = { json: type !== undefined, events: acceptsEvents(headers.accept) };
    const response = await yoga.fetch(request, { useCases, scope, accepts, given: params });
    const names: Record<string, string> = {};
    for (const [name, value] of response.headers) names[name.toLowerCase()] = value;
    const { status } = response;
    if (names["content-type"] === EVENT_STREAM)
      return { status, headers: EVENT_HEADERS, body: response.body! };
    if (!type) names["content-type"] = RESPONSE_TYPES[0];
    return { status, headers: names, body: await response.text() };
  }

  /**
   * Runs an operation of a cached document; undefined if the request is in any way not valid.
   * Throws RATE_LIMITED.
   */
  async function answerCached(
    { method }: HttpRequest,
    params: object,
    scope: RequestScope,
  ): Promise<string | undefined> {
    if (!areParams(params)) return undefined;
    const document = documents.cached(params.query);
    const operation = document && findOperation(document, params.operationName);
    if (!operation || !mayRunBy(method, operation)) return undefined;
    const size = operation.measure(params.variables);
    if (exceededLimit(size.counts) || exceededRateLimit(size, scope)) return undefined;
    if (size.requests > 1) await admit(size, scope);
    const result = await operation.run({ useCases, scope }, params.variables);
    if (result.data === undefined) return undefined;
    const converted = convertErrors(result, scope);
    recordFirstCode(converted, scope);
    return printResult(converted);
  }

  return {
    /**
     * Answers a request whose caller has been admitted. Throws ContractError RATE_LIMITED.
     */
    async answer(request: HttpRequest, scope: RequestScope): Promise<Answer> {
      const type = responseType(request.headers.accept);
      let params: object;
      try {
        params = await check(request, type);
      } catch (error) {
        if (!(error instanceof GraphQLError)) throw error;
        // Yoga formats this error.
        params = error;
      }
      if (type && !(params instanceof GraphQLError)) {
        const body = await answerCached(request, params, scope);
        if (body !== undefined) return { status: 200, headers: { "content-type": type }, body };
      }
      return answerWithYoga(request, params, type, scope);
    },

    answerFailure: (error: ContractError, { headers }: HttpRequest) =>
      answerGraphQLError(error, responseType(headers.accept)),
  };
}

/** Returns the parameters of a request. Fails with GraphQLError BAD_REQUEST. */
function check(request: HttpRequest, type: ResponseType | undefined): object | Promise<object> {
  const { method, headers } = request;
  if (method === "POST" && !isJson(headers["content-type"]))
    throw badRequest("The body must be JSON, with the header `Content-Type: application/json`.", {
      status: 415,
    });
  // Yoga checks this only after it has run the operation, even a mutation.
  if (!type && !acceptsEvents(headers.accept)) throw badRequest(MUST_ACCEPT_JSON, { status: 406 });
  return readParams(request);
}

/** Subscriptions are streams, and a mutation by GET is refused. */
const mayRunBy = (method: string, { node: { operation } }: Operation): boolean =>
  operation === OperationTypeNode.QUERY ||
  (operation === OperationTypeNode.MUTATION && method === "POST");

/** Returns GraphQLError BAD_REQUEST if an operation can never pass the caller's rate limit. */
function exceededRateLimit(
  { requests }: OperationSize,
  { rateLimit }: RequestScope,
): GraphQLError | undefined {
  if (rateLimit === undefined || requests <= rateLimit.limit) return undefined;
  return badRequest(
    `This request counts as ${requests} requests, and the rate limit is ${rateLimit.limit}. Split it.`,
  );
}

/**
 * Takes what an operation costs. Rejects with ContractError RATE_LIMITED, or with GraphQLError
 * BAD_REQUEST if the operation costs more than the limit: clients would wait in vain.
 */
async function admit(size: OperationSize, scope: RequestScope): Promise<void> {
  const { requests } = size;
  const refusal = exceededRateLimit(size, scope);
  if (refusal) throw refusal;
  if (requests > 1) await scope.admit(requests);
}

function convertErrors(result: ExecutionResult, scope: RequestScope): ExecutionResult {
  const { errors } = result;
  if (!errors) return result;
  const convert = (cause: unknown) => scope.toCallerError(cause);
  // GraphQL over HTTP: an invalid request, which did not run, has no `data`.
  const http = result.data === undefined && { http: { status: 400, spec: true } };
  const converted = errors.map((error) => {
    if (http) Object.assign(error.extensions, http);
    const shown = toGraphQLError(error, convert);
    return http ? shown : withoutClass(shown);
  });
  return withPrint({ ...result, errors: converted });
}

/** Makes Yoga print a result with {@link printResult}. */
function withPrint(result: ExecutionResult): ExecutionResult {
  return Object.assign(result, { stringify: () => printResult(result) });
}

function recordFirstCode({ errors }: ExecutionResult, scope: RequestScope): void {
  if (errors?.[0])
    scope.recordCode(scope.signal.aborted ? "ABORTED" : String(errors[0].extensions.code));
}
