import { getOperationAST, parse, type GraphQLSchema } from "graphql";
import { createPrepareRun } from "../graphql/run-operation.ts";
import type { UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

export type PrepareOperation = ReturnType<typeof createPrepareOperation>;

/**
 * Prepares fixed operations on the GraphQL endpoint's schema. A run returns its data or throws its
 * first error.
 */
export function createPrepareOperation(schema: GraphQLSchema, useCases: UseCases) {
  const prepareRun = createPrepareRun(schema);
  return <Data>(text: string) => {
    const document = parse(text, { noLocation: true });
    const { run } = prepareRun(document, getOperationAST(document)!);
    return async (
      variables: Readonly<Record<string, unknown>>,
      scope: RequestScope,
    ): Promise<Data> => {
      const { data, errors } = await run({ useCases, scope }, variables);
      const error = errors?.[0];
      if (error) throw error.originalError ?? error;
      return data as Data;
    };
  };
}
