import type { GraphQLSchema } from "graphql";
import { createYoga } from "graphql-yoga";
import type { UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import type { ServerContext } from "./context.ts";
import { readAccept } from "./media-types.ts";
import { useOperations } from "./operations.ts";
import { useParams } from "./params.ts";
import { useResults } from "./results.ts";

/** Answers GraphQL requests by Yoga, which gets a Request and no Node request. */
export function createGraphQLEndpoint(needs: {
  schema: GraphQLSchema;
  path: string;
  useCases: UseCases;
}) {
  const { schema, path, useCases } = needs;
  const yoga = createYoga<ServerContext>({
    schema,
    graphqlEndpoint: path,
    plugins: [useParams(), useOperations(schema), useResults()],
    // `useOperations` caches documents, and `useResults` masks errors.
    parserAndValidationCache: false,
    maskedErrors: false,
    // `useParams` limits bodies.
    maxRequestBodySize: false,
    // No URL ends with a space.
    healthCheckEndpoint: " ",
    graphiql: false,
    multipart: false,
    cors: false,
    landingPage: false,
    logging: false,
  });

  /** Answers a request. Takes its price from the rate limit. */
  return async (request: Request, scope: RequestScope): Promise<Response> => {
    const { url, method, headers } = request;
    const accepts = readAccept(headers.get("accept"));
    // Yoga answers no HEAD.
    const yogaRequest = method === "HEAD" ? new yoga.fetchAPI.Request(url, { headers }) : request;
    // Of one context, Yoga would make a prototype, which V8 optimizes anew in each request.
    return yoga.fetch(yogaRequest, { useCases }, { scope, accepts });
  };
}
