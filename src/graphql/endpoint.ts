import type { DocumentNode, ExecutionArgs, ExecutionResult, GraphQLSchema } from "graphql";
import { createYoga, type Plugin, type YogaInitialContext } from "graphql-yoga";
import { ContractError } from "../contract/errors.ts";
import { parseJson } from "../upstream/parse-json.ts";
import type { Logger } from "../observability/log.ts";
import { createRequestContext, type RequestContext, type Services } from "../resolvers/context.ts";
import type { Caller } from "../resolvers/request-scope.ts";
import { MAX_BODY_BYTES, respondErrors, respondGraphQLError, toGraphQLError } from "./errors.ts";
import { createKnownOperations } from "./operation-cache.ts";
import { exceededLimit, parseWithinLimits, validateWithinLimits } from "./limits/operation-limits.ts";

/** What the edge gives each request beside its caller: the caller's budget, and a log that names the request. */
export interface GraphQLCall extends Caller {
  /**
   * Takes `cost` requests out of the caller's budget, or throws RATE_LIMITED and takes none. Once more
   * with a higher cost it takes that in all.
   */
  readonly admit: (cost: number) => Promise<void>;
  readonly log: Logger;
}

interface ServerContext {
  readonly call: GraphQLCall;
}

const JSON_BODY = /^application\/json *(;|$)/;
const ACCEPTABLE = ["*/*", "application/*", "application/json", "application/graphql-response+json"];

export type GraphQLEndpoint = ReturnType<typeof createGraphQL>;

/**
 * The GraphQL endpoint at `endpoint`. Yoga answers it; what it has run before can be run again without it,
 * by `answerKnown`.
 */
export function createGraphQL(needs: {
  schema: GraphQLSchema;
  endpoint: string;
  services: Services;
  log: Logger;
}) {
  const { services } = needs;
  const known = createKnownOperations(needs.schema);

  /** Refuses a document that is too large, or one of its operations. */
  const limit: Plugin<ServerContext & YogaInitialContext> = {
    onParse({ setParseFn }) {
      setParseFn(parseWithinLimits);
    },
    onValidate({ context, setValidationFn }) {
      setValidationFn((schema: GraphQLSchema, document: DocumentNode) =>
        validateWithinLimits(schema, document, context.params),
      );
    },
  };

  /** Takes an operation's cost before it runs, and shows its errors as the contract has them. */
  const admitAndExplain: Plugin<ServerContext> = {
    async onExecute({ args }) {
      const { document, operationName, contextValue } = args as ExecutionArgs & {
        contextValue: ServerContext & YogaInitialContext;
      };
      const { call, params } = contextValue;
      call.log.debug("an operation that is not known was parsed");
      const operation = known.add(params.query ?? "", operationName ?? undefined, document);
      if (operation && operation.cost > 1) await call.admit(operation.cost);
      (args as ExecutionArgs).hideSuggestions = true;
      return {
        onExecuteDone({ result, setResult }) {
          setResult(explainErrors(result as ExecutionResult, call.log));
        },
      };
    },
    onResultProcess({ result, serverContext }) {
      noteError(result as ExecutionResult, (serverContext as unknown as ServerContext).call);
    },
  };

  const yoga = createYoga<ServerContext, RequestContext>({
    schema: needs.schema,
    graphqlEndpoint: needs.endpoint,
    context: ({ call }) => createRequestContext(services, call),
    plugins: [limit, admitAndExplain],
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

  /** Answers a request whose caller has been admitted. */
  async function answer(request: Request, call: GraphQLCall): Promise<Response> {
    const refusal = refuseForm(request);
    if (refusal) return refusal;
    const response = await yoga.fetch(request, { call });
    // Yoga leaves off in the middle of it, and what is left would stand before the connection's next request.
    if (response.status === 413) response.headers.set("connection", "close");
    return response;
  }

  return {
    answer,

    /** Answers whatever comes to the endpoint; an operation costs its caller one request before it is read. */
    async handle(request: Request, call: GraphQLCall): Promise<Response> {
      try {
        await call.admit(1);
        return await answer(request, call);
      } catch (error) {
        if (!(error instanceof ContractError)) throw error;
        call.note(error.code);
        return respondGraphQLError(error);
      }
    },

    /**
     * The answer, in JSON, to the body of a POST whose caller has been admitted, if it is an operation that
     * has been run before and is within the limits; else undefined, and nothing has been done.
     *
     * @throws {ContractError} RATE_LIMITED
     */
    async answerKnown(body: string, call: GraphQLCall): Promise<string | undefined> {
      const params = parseJson(body);
      if (!isPlain(params)) return undefined;
      const operation = known.get(params.query, params.operationName ?? undefined);
      if (!operation || exceededLimit(operation.size, params.variables)) return undefined;
      if (operation.cost > 1) await call.admit(operation.cost);
      const result = await operation.run(createRequestContext(services, call), params.variables);
      if (result.data === undefined) return undefined;
      const explained = explainErrors(result, call.log);
      noteError(explained, call);
      return JSON.stringify(explained);
    },
  };
}

interface PlainParams {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null;
  readonly operationName?: string | null;
}

/** Whether a body has nothing but a query, a name without line breaks, and an object of variables. */
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

function explainErrors(result: ExecutionResult, log: Logger): ExecutionResult {
  const { errors } = result;
  return errors ? { ...result, errors: errors.map((error) => toGraphQLError(error, log)) } : result;
}

function noteError({ errors }: ExecutionResult, call: GraphQLCall): void {
  if (errors?.[0]) call.note(call.signal.aborted ? "ABORTED" : String(errors[0].extensions.code));
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
