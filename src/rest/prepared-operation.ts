import { getOperationAST, parse, type GraphQLSchema } from "graphql";
import { createRequestContext, type Services } from "../resolvers/context.ts";
import type { Caller } from "../resolvers/request-scope.ts";
import { compile } from "../graphql/compiler.ts";

/** An operation that was written beforehand: gives its data, or throws its first error. */
export type Operation<Data> = (variables: Record<string, string>, caller: Caller) => Promise<Data>;

/** Prepares operations on the schema that GraphQL clients use, each run a request with loaders of its own. */
export function createPrepare(schema: GraphQLSchema, services: Services) {
  return <Data>(text: string): Operation<Data> => {
    const document = parse(text);
    const node = getOperationAST(document)!;
    const run = compile(schema, document, node);
    return async (variables, caller) => {
      const { data, errors } = await run(createRequestContext(services, caller), variables);
      const error = errors?.[0];
      if (error) throw error.originalError ?? error;
      return data as Data;
    };
  };
}

export type Prepare = ReturnType<typeof createPrepare>;
