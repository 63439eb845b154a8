import {
  Kind,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type SelectionNode,
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
 * The fields of selection sets, in order. Fragments are expanded in place, each once, because
 * GraphQL merges repeated fields. Type conditions are ignored: each interface of the schema has one
 * type, so in a valid document all hold. Leaves out selections that `includes` excludes.
 */
export function fieldsOf(
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  sets: readonly SelectionSetNode[],
  includes: (selection: SelectionNode) => boolean = () => true,
): FieldNode[] {
  const fields: FieldNode[] = [];
  const visitedFragments = new Set<string>();
  /** Selections that are still to be read, the next one last. */
  const waiting = sets.flatMap(({ selections }) => selections).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (!includes(next)) continue;
    if (next.kind === Kind.FIELD) {
      fields.push(next);
      continue;
    }
    let set: SelectionSetNode | undefined;
    if (next.kind === Kind.INLINE_FRAGMENT) set = next.selectionSet;
    else if (!visitedFragments.has(next.name.value)) {
      visitedFragments.add(next.name.value);
      set = fragments.get(next.name.value)?.selectionSet;
    }
    if (set) waiting.push(...set.selections.toReversed());
  }
  return fields;
}
