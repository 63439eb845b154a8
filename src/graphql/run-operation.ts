import {
  execute,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from "graphql";
import type { Context } from "../resolvers/use-cases.ts";

export type OperationVariables = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Runs one operation. A result without `data` means that the variables are invalid and nothing ran.
 */
export type Run = (
  contextValue: Context,
  variables: OperationVariables,
) => ExecutionResult | Promise<ExecutionResult>;

/** Runs an operation of a valid document with graphql-js, which makes no code of it. */
export function createRun(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Run {
  const operationName = operation.name?.value;
  return (contextValue, variableValues) =>
    execute({
      schema,
      document,
      operationName,
      contextValue,
      variableValues,
      hideSuggestions: true,
    });
}
