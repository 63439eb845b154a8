import { execute, parse, type GraphQLSchema } from "graphql";
import type { UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

export type PrepareOperation = ReturnType<typeof createPrepareOperation>;

/**
 * Prepares fixed operations on the GraphQL endpoint's schema. A run returns its data or throws its
 * first error.
 */
export function createPrepareOperation(schema: GraphQLSchema, useCases: UseCases) {
  return <Data>(text: string) => {
    const document = parse(text, { noLocation: true });
    return async (
      variableValues: Readonly<Record<string, unknown>>,
      scope: RequestScope,
    ): Promise<Data> => {
      const contextValue = { useCases, scope };
      const { data, errors } = await execute({ schema, document, contextValue, variableValues });
      const error = errors?.[0];
      if (error) throw error.originalError ?? error;
      return data as Data;
    };
  };
}
