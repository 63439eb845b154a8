import { OperationTypeNode, type DocumentNode, type OperationDefinitionNode } from "graphql";
import { fieldsOf, fragmentsOf } from "../selected-fields.ts";

/**
 * What an operation takes out of the caller's budget: a query one request, however much it asks for, a
 * mutation one for each field that it runs. Counted as written, before anything runs: two fields of one
 * response name are one, and a field under `@skip` counts.
 */
export function operationCost(document: DocumentNode, operation: OperationDefinitionNode): number {
  if (operation.operation !== OperationTypeNode.MUTATION) return 1;
  const names = new Set<string>();
  for (const { name, alias } of fieldsOf(fragmentsOf(document), [operation.selectionSet])) {
    if (name.value !== "__typename") names.add((alias ?? name).value);
  }
  return Math.max(1, names.size);
}
