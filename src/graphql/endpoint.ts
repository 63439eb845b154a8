import type { DocumentNode, ExecutionArgs, ExecutionResult, GraphQLSchema } from "graphql";
import { createYoga, type Plugin, type YogaInitialContext } from "graphql-yoga";
import { ContractError } from "../contract/contract-error.ts";
import type { Logger } from "../observability/log.ts";
import type { Context, UseCases } from "../resolvers/context.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { toCallerError } from "../resolvers/to-caller-error.ts";
import { parseJson } from "../upstream/parse-json.ts";
import { MAX_BODY_BYTES, respondErrors, respondGraphQLError, toGraphQLError } from "./errors.ts";
import { exceededLimit, parseWithinLimits, validateWithinLimits } from "./limits/operation-limits.ts";
import { createOperationCache } from "./operation-cache.ts";

const JSON_BODY = /^application\/json *(;|$)/;
const ACCEPTABLE = ["*/*", "application/*", "application/json", "application/graphql-response+json"];

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
      scope.log.debug("parsed an operation that was not cached");
      const operation = cache.add(params.query ?? "", operationName ?? undefined, document);
      if (operation && operation.cost > 1) await scope.admit(operation.cost);
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

  const yoga = createYoga<Context>({
    schema,
    graphqlEndpoint: needs.path,
    plugins: [limit, admitAndConvertErrors],
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
    const refusal = mediaTypeRefusal(request);
    if (refusal) return refusal;
    const response = await yoga.fetch(request, { useCases, scope });
    // Yoga stops reading in the middle of the body, so the connection cannot be used for another request.
    if (response.status === 413) response.headers.set("connection", "close");
    return response;
  }

  return {
    answer,

    /** Answers any request to the endpoint. Takes one request from the caller's rate limit before it reads the body. */
    async handle(request: Request, scope: RequestScope): Promise<Response> {
      try {
        await scope.admit(1);
        return await answer(request, scope);
      } catch (error) {
        if (!(error instanceof ContractError)) throw error;
        scope.recordCode(error.code);
        return respondGraphQLError(error);
      }
    },

    /**
     * Answers the body of a POST whose caller has been admitted, if its operation is cached and within the limits.
     * Otherwise runs nothing and returns undefined. Throws ContractError RATE_LIMITED.
     */
    async answerCached(body: string, scope: RequestScope): Promise<string | undefined> {
      const params = parseJson(body);
      if (!isPlain(params)) return undefined;
      const operation = cache.get(params.query, params.operationName ?? undefined);
      if (!operation || exceededLimit(operation.size, params.variables)) return undefined;
      if (operation.cost > 1) await scope.admit(operation.cost);
      const result = await operation.run({ useCases, scope }, params.variables);
      if (result.data === undefined) return undefined;
      const converted = convertErrors(result, scope);
      recordFirstCode(converted, scope);
      return JSON.stringify(converted);
    },
  };
}

interface PlainParams {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null;
  readonly operationName?: string | null;
}

/** Whether a body has only a query, an operation name of word characters, and an object of variables. */
function isPlain(body: unknown): body is PlainParams {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return false;
  const { query, variables = null, operationName = null, ...rest } = body as Record<string, unknown>;
  return (
    typeof query === "string" &&
    typeof variables === "object" &&
    !Array.isArray(variables) &&
    (operationName === null || (typeof operationName === "string" && /^\w+$/.test(operationName))) &&
    Object.keys(rest).length === 0
  );
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

function mediaTypeRefusal({ method, headers }: Request): Response | undefined {
  if (method === "POST" && !JSON_BODY.test(headers.get("content-type") ?? "")) {
    return respondErrors(415, {
      message: "The body must be JSON, with the header `Content-Type: application/json`.",
    });
  }
  if (!isAcceptable(headers.get("accept") || "*/*")) {
    const message = "`Accept` must allow application/json or application/graphql-response+json.";
    return respondErrors(406, { message });
  }
  return undefined;
}

/** Yoga checks this only after it has run the operation, even a mutation. */
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
