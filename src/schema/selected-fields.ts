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
  const visitedFragments = new Set<string>();
  const fieldsIn = ({ selections }: SelectionSetNode): FieldNode[] =>
    selections.filter(includes).flatMap((selection) => {
      if (selection.kind === Kind.FIELD) return selection;
      if (selection.kind === Kind.INLINE_FRAGMENT) return fieldsIn(selection.selectionSet);
      const name = selection.name.value;
      const fragment = visitedFragments.has(name) ? undefined : fragments.get(name);
      visitedFragments.add(name);
      return fragment ? fieldsIn(fragment.selectionSet) : [];
    });
  return sets.flatMap(fieldsIn);
}
