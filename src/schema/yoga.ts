import { renderGraphiQL } from "@graphql-yoga/render-graphiql";
import {
  getOperationAST,
  GraphQLError,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
} from "graphql";
import { createYoga, type Plugin } from "graphql-yoga";
import { type ContractError, ERROR_TABLE, errorHeaders, toCallerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { createRequestContext, type RequestContext, type Services } from "../resolvers/context.ts";
import { operationCost } from "./operation-cost.ts";

/** What the edge gives each request: the caller's budget, and a log that names the request. */
export interface GraphQLCall {
  /** Takes `cost` requests out of the caller's budget, or throws RATE_LIMITED. */
  readonly admit: (cost: number) => Promise<void>;
  readonly log: Logger;
}

/** A call under way. Every request pays once: when its operation is known, or else with its answer. */
interface ServerContext {
  readonly toll: GraphQLCall & { isPaid: boolean };
}

const MAX_BODY_BYTES = 100_000;
const EXAMPLE_OPERATIONS = `# Ctrl+Enter runs the operation at the cursor.

query OneWallet {
  wallet(handle: "creator") {
    handle
    socialId
    address
    balance {
      vault
      pda
      total
      withdrawable
    }
  }
}

query ManyWallets {
  wallets(handles: ["creator", "newcomer", "dusty"]) {
    handle
    balance {
      total
    }
  }
}

mutation Collect {
  collect(socialId: "put the socialId of a wallet here") {
    success
    collected
    newBalance
    txSignature
    message
  }
}
`;

/** The GraphQL endpoint at `endpoint`, with GraphiQL for browsers, from the package and with no network. */
export function createGraphQL(needs: {
  schema: GraphQLSchema;
  endpoint: string;
  services: Services;
  log: Logger;
}) {
  const yoga = createYoga<ServerContext, RequestContext>({
    schema: needs.schema,
    graphqlEndpoint: needs.endpoint,
    context: () => createRequestContext(needs.services),
    plugins: [payAndExplain],
    maskedErrors: { maskError: (error) => toGraphQLError(error, needs.log) },
    renderGraphiQL,
    graphiql: { title: "Tributary", defaultQuery: EXAMPLE_OPERATIONS },
    maxRequestBodySize: MAX_BODY_BYTES,
    multipart: false,
    cors: false,
    landingPage: false,
    logging: false,
  });

  return async (request: Request, call: GraphQLCall): Promise<Response> => {
    const toll = { ...call, isPaid: false };
    const response = await yoga.fetch(request, { toll });
    const isPage = response.headers.get("content-type")?.startsWith("text/html");
    if (toll.isPaid || isPage) return response;
    // What could not be read or is not valid counts like any request.
    return call.admit(1).then(
      () => response,
      (error: unknown) => respondGraphQLError(error as ContractError),
    );
  };
}

/** Takes an operation's cost before it runs, and shows its errors as the contract has them. */
const payAndExplain: Plugin<ServerContext> = {
  async onExecute({ args }) {
    const { document, operationName, contextValue } = args as ExecutionArgs & { contextValue: ServerContext };
    const { toll } = contextValue;
    const operation = getOperationAST(document, operationName);
    if (operation) {
      toll.isPaid = true;
      await toll.admit(operationCost(document, operation));
    }
    return {
      onExecuteDone({ result, setResult }) {
        const { errors } = result as ExecutionResult;
        if (errors) setResult({ ...result, errors: errors.map((error) => toGraphQLError(error, toll.log)) });
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
  const source = error instanceof GraphQLError ? error : undefined;
  if (source && !source.originalError) return source;
  const shown = toCallerError(source?.originalError ?? error, log);
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

function respondGraphQLError(error: ContractError): Response {
  const { message, code, retryAfterSeconds } = error;
  return Response.json(
    { errors: [{ message, extensions: { code, retryAfterSeconds } }] },
    { status: ERROR_TABLE[code].status, headers: errorHeaders(error) },
  );
}
