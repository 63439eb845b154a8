import type { DocumentNode, GraphQLSchema, OperationDefinitionNode } from "graphql";
import { metadataOf } from "../../schema/field-metadata.ts";
import { countsWith, type OperationSize } from "./operation-size.ts";
import { fieldsOf, fragmentsOf } from "../selected-fields.ts";

/**
 * The number of requests that an operation's root fields take from the caller's rate limit: their sum, at least one.
 * Computed before anything runs: fields with the same response name count once, and a field under `@skip` counts too.
 */
export function operationCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): number {
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  const requestsByName = new Map<string, number>();
  for (const { name, alias } of fieldsOf(fragmentsOf(document), [operation.selectionSet])) {
    const field = fields[name.value];
    if (field) requestsByName.set((alias ?? name).value, metadataOf(field).cost?.requests ?? 0);
  }
  const requests = requestsByName.values().reduce((sum, each) => sum + each, 0);
  return Math.max(1, requests);
}

/** The number of requests that an operation takes with these variables: one more for each page of a history. */
export function costWith(
  { cost, size }: { readonly cost: number; readonly size: OperationSize },
  variables: Readonly<Record<string, unknown>> | null | undefined,
): number {
  return cost + countsWith(size, variables ?? {}).histories;
}
