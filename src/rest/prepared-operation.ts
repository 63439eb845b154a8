import {
  getOperationAST,
  parse,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
} from "graphql";
import { createPrepareRun } from "../graphql/run-operation.ts";
import type { UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

export type PrepareOperation = ReturnType<typeof createPrepareOperation>;

/** Prepares fixed operations on the GraphQL endpoint's schema. */
export function createPrepareOperation(schema: GraphQLSchema, useCases: UseCases) {
  const prepareRun = createPrepareRun(schema);
  return (text: string) => {
    const document = parse(text, { noLocation: true });
    const { run } = prepareRun(document, getOperationAST(document)!);
    return async (
      variables: Readonly<Record<string, unknown>>,
      scope: RequestScope,
    ): Promise<ExecutionResult> => run({ useCases, scope }, variables);
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
