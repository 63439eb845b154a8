import {
  Kind,
  OperationTypeNode,
  type DocumentNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";

/**
 * What an operation takes out of the caller's budget: a query one request, however much it asks for, a
 * mutation one for each field that it runs. Counted as written, before anything runs: two fields of one
 * response name are one, and a field under `@skip` counts.
 */
export function operationCost(document: DocumentNode, operation: OperationDefinitionNode): number {
  if (operation.operation !== OperationTypeNode.MUTATION) return 1;
  const names = new Set<string>();
  collectNames(document, operation.selectionSet, names);
  return Math.max(1, names.size);
}

/** The document has been validated: fragments exist and do not contain themselves. */
function collectNames(document: DocumentNode, { selections }: SelectionSetNode, names: Set<string>): void {
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) {
      if (selection.name.value !== "__typename") names.add((selection.alias ?? selection.name).value);
    } else if (selection.kind === Kind.INLINE_FRAGMENT) {
      collectNames(document, selection.selectionSet, names);
    } else {
      const fragment = document.definitions.find(
        (definition) =>
          definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value,
      );
      if (fragment?.kind === Kind.FRAGMENT_DEFINITION) collectNames(document, fragment.selectionSet, names);
    }
  }
}
