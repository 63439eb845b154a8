import { execute, type DocumentNode, type GraphQLSchema } from "graphql";
import { createRequestContext, type Services } from "../resolvers/context.ts";
import type { Caller } from "../resolvers/loaders.ts";

/**
 * Runs an operation that was written beforehand, and gives its data or throws its first error. Its reads
 * end with the caller's signal.
 */
export type RunOperation = <Data>(
  document: DocumentNode,
  variables: Record<string, string>,
  caller: Caller,
) => Promise<Data>;

/** Executes operations on the schema that GraphQL clients use, each as a request with loaders of its own. */
export function createRunOperation(schema: GraphQLSchema, services: Services): RunOperation {
  return async <Data>(document: DocumentNode, variableValues: Record<string, string>, caller: Caller) => {
    const contextValue = createRequestContext(services, caller);
    const { data, errors } = await execute({ schema, document, variableValues, contextValue });
    const error = errors?.[0];
    if (error) throw error.originalError ?? error;
    return data as Data;
  };
}
