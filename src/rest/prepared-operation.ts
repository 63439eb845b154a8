import { getOperationAST, parse, type GraphQLSchema } from "graphql";
import { compile } from "../graphql/compiler.ts";
import type { UseCases } from "../resolvers/context.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

/** Runs a fixed GraphQL operation. Returns its data or throws its first error. */
export type PreparedOperation<Data> = (
  variables: Readonly<Record<string, unknown>>,
  scope: RequestScope,
) => Promise<Data>;

export type PrepareOperation = ReturnType<typeof createPrepareOperation>;

/** Prepares operations on the schema that GraphQL clients use. */
export function createPrepareOperation(schema: GraphQLSchema, useCases: UseCases) {
  return <Data>(text: string): PreparedOperation<Data> => {
    const document = parse(text);
    const run = compile(schema, document, getOperationAST(document)!);
    return async (variables, scope) => {
      const { data, errors } = await run({ useCases, scope }, variables);
      const error = errors?.[0];
      if (error) throw error.originalError ?? error;
      return data as Data;
    };
  };
}
