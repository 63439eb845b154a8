import {
  Kind,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type SelectionSetNode,
} from "graphql";

export function fragmentsOf(document: DocumentNode): Map<string, FragmentDefinitionNode> {
  return new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
}

/**
 * The fields of selection sets. Fragments are expanded in place, each once, because GraphQL merges
 * repeated fields.
 */
export function* fieldsOf(
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  sets: readonly SelectionSetNode[],
  visited = new Set<string>(),
): Generator<FieldNode> {
  for (const { selections } of sets) {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) yield selection;
      else if (selection.kind === Kind.INLINE_FRAGMENT) {
        yield* fieldsOf(fragments, [selection.selectionSet], visited);
      } else {
        const name = selection.name.value;
        if (visited.has(name)) continue;
        visited.add(name);
        const fragment = fragments.get(name);
        if (fragment) yield* fieldsOf(fragments, [fragment.selectionSet], visited);
      }
    }
  }
}
