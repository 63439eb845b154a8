import type { DocumentNode, GraphQLSchema, OperationDefinitionNode } from "graphql";
import { metadataOf } from "../../schema/field-metadata.ts";
import { fieldsOf, fragmentsOf } from "../selected-fields.ts";

/**
 * How many requests an operation takes from the caller's rate limit: the sum of what its root fields declare,
 * at least one. Counted as written, before anything runs: two fields of one response name are one, and a
 * field under `@skip` counts.
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
