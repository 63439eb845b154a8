import {
  execute,
  parse,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
} from "graphql";
import type { UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

export type PrepareOperation = ReturnType<typeof createPrepareOperation>;

/** Prepares fixed operations on the GraphQL endpoint's schema. */
export function createPrepareOperation(schema: GraphQLSchema, useCases: UseCases) {
  return (text: string) => {
    const document = parse(text, { noLocation: true });
    return async (variableValues: Readonly<Record<string, unknown>>, scope: RequestScope) =>
      execute({ schema, document, contextValue: { useCases, scope }, variableValues });
  };
}

/** The data of a result. Throws its first error. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the operation's text
export function dataOf<Data>({ data, errors }: ExecutionResult): Data {
  const error = errors?.[0];
  if (error) throw causeOf(error);
  return data as Data;
}

/** What a resolver has thrown. */
export const causeOf = (error: GraphQLError): Error => error.originalError ?? error;
