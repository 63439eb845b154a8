import { execute, parse, type GraphQLSchema } from "graphql";
import type { UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

export type PrepareOperation = ReturnType<typeof createPrepareOperation>;

/** Prepares fixed operations on the GraphQL endpoint's schema. */
export function createPrepareOperation(schema: GraphQLSchema, useCases: UseCases) {
  /** The operation resolves to its data. It rejects with what a resolver has thrown first. */
  return <Data>(text: string) => {
    const document = parse(text);
    return async (variableValues: Readonly<Record<string, unknown>>, scope: RequestScope) => {
      const contextValue = { useCases, scope };
      const { data, errors } = await execute({ schema, document, contextValue, variableValues });
      const error = errors?.[0];
      if (error) throw error.originalError ?? error;
      return data as Data;
    };
  };
}
