import {
  Kind,
  OperationTypeNode,
  type DocumentNode,
  type FragmentDefinitionNode,
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
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const names = new Set<string>();
  const collectNames = ({ selections }: SelectionSetNode): void => {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        if (selection.name.value !== "__typename") names.add((selection.alias ?? selection.name).value);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        collectNames(selection.selectionSet);
      } else {
        const fragment = fragments.get(selection.name.value);
        // Each is walked once, or else fragments that spread each other twice would take time without end.
        fragments.delete(selection.name.value);
        if (fragment) collectNames(fragment.selectionSet);
      }
    }
  };
  collectNames(operation.selectionSet);
  return Math.max(1, names.size);
}
