import {
  getNamedType,
  isObjectType,
  Kind,
  type DocumentNode,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { metadataOf } from "../../schema/field-metadata.ts";
import { argumentOf, createVariableLength, literalLength, type Variables } from "./list-length.ts";

/** The counts of an operation. A fragment counts every time it is spread. */
export interface Counts {
  wallets: number;
  /** Fields that collect one account. */
  collects: number;
  /** The accounts in lists that are collected together. */
  listedCollects: number;
  /** Coins that fields name. */
  mints: number;
  /** Levels of nested fields. */
  depth: number;
  /** The fields directly in a selection set; for an operation, its root fields. */
  rootFields: number;
  /** At all depths. Below a field with a list argument, each field counts once per item. */
  fields: number;
  aliases: number;
  /** Introspection fields, at all depths. */
  introspection: number;
}

/** The counts that each item of a list argument adds. */
interface PerItem {
  wallets: number;
  collects: number;
  listedCollects: number;
  mints: number;
  fields: number;
}

/** The size of a selection. `counts` leaves out lists in variables, because their length is known only at run time. */
interface Size {
  readonly counts: Counts;
  /** What each item of a list in a variable adds, by the variable's name. No field with a list argument contains another. */
  readonly perItemOfVariable: Map<string, PerItem>;
}

/** The size of an operation. */
export interface OperationSize extends Size {
  readonly variableLength: ReturnType<typeof createVariableLength>;
}

/** The counts of an operation with these variables. */
export function countsWith(
  { counts, perItemOfVariable, variableLength }: OperationSize,
  variables: Variables,
): Counts {
  const total = { ...counts };
  for (const [name, perItem] of perItemOfVariable) {
    addItems(total, perItem, variableLength(name, variables));
  }
  return total;
}

/**
 * Measures an operation. The document may be invalid: an unknown field counts as a field and costs nothing.
 * Each fragment is walked only once, even if it is spread many times.
 */
export function measureOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): OperationSize {
  const fragments = new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((definition) => [definition.name.value, definition]),
  );
  const measured = new Map<string, Size>();

  function measureFragment(name: string): Size {
    const known = measured.get(name);
    if (known) return known;
    // Empty while it is measured, so that a fragment that spreads itself (which is invalid) does not recurse.
    measured.set(name, emptySize());
    const fragment = fragments.get(name);
    const size = fragment
      ? measureSet(fragment.selectionSet, objectType(fragment.typeCondition.name.value))
      : emptySize();
    measured.set(name, size);
    return size;
  }

  function objectType(name: string | undefined): GraphQLObjectType | undefined {
    const type = name === undefined ? undefined : schema.getType(name);
    return isObjectType(type) ? type : undefined;
  }

  function measureSet({ selections }: SelectionSetNode, parent: GraphQLObjectType | undefined): Size {
    const size = emptySize();
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) add(size, measureField(selection, parent));
      else if (selection.kind === Kind.INLINE_FRAGMENT) {
        const condition = selection.typeCondition?.name.value;
        add(size, measureSet(selection.selectionSet, condition ? objectType(condition) : parent));
      } else add(size, measureFragment(selection.name.value));
    }
    return size;
  }

  function measureField(node: FieldNode, parent: GraphQLObjectType | undefined): Size {
    const name = node.name.value;
    const field = parent?.getFields()[name];
    const type = field && getNamedType(field.type);
    const size = node.selectionSet
      ? measureSet(node.selectionSet, isObjectType(type) ? type : undefined)
      : emptySize();
    const { counts } = size;
    const cost = (field && metadataOf(field).cost) ?? {};
    const { wallets = 0, collects = 0, listedCollects = 0, perItemOf, mintsIn } = cost;
    if (perItemOf === undefined) {
      counts.wallets += wallets;
      counts.collects += collects;
    } else {
      const perItem = {
        wallets: counts.wallets + wallets,
        collects: counts.collects + collects,
        listedCollects: counts.listedCollects + listedCollects,
        mints: counts.mints,
        fields: counts.fields,
      };
      counts.wallets = counts.collects = counts.listedCollects = counts.mints = counts.fields = 0;
      addList(size, node, perItemOf, perItem);
    }
    if (mintsIn !== undefined) addList(size, node, mintsIn, { ...NO_ITEM, mints: 1 });
    counts.depth++;
    counts.rootFields = 1;
    counts.fields++;
    if (node.alias) counts.aliases++;
    if (name === "__schema" || name === "__type") counts.introspection = counts.fields;
    return size;
  }

  const root = schema.getRootType(operation.operation) ?? undefined;
  return { ...measureSet(operation.selectionSet, root), variableLength: createVariableLength(operation) };
}

/** Adds what the items of a field's list argument count. */
function addList({ counts, perItemOfVariable }: Size, node: FieldNode, argument: string, perItem: PerItem) {
  const list = argumentOf(node, argument);
  if (list?.kind === Kind.VARIABLE) addPerItem(perItemOfVariable, list.name.value, perItem);
  else addItems(counts, perItem, literalLength(list));
}

const emptySize = (): Size => ({
  counts: {
    ...{ wallets: 0, collects: 0, listedCollects: 0, mints: 0 },
    ...{ depth: 0, rootFields: 0, fields: 0, aliases: 0, introspection: 0 },
  },
  perItemOfVariable: new Map(),
});

const NO_ITEM: PerItem = { wallets: 0, collects: 0, listedCollects: 0, mints: 0, fields: 0 };

function addItems(counts: Counts, perItem: PerItem, length: number): void {
  for (const count of Object.keys(perItem) as (keyof PerItem)[]) counts[count] += perItem[count] * length;
}

/** Adds the size of a sibling selection. */
function add(size: Size, { counts, perItemOfVariable }: Size): void {
  for (const name of Object.keys(counts) as (keyof Counts)[]) {
    size.counts[name] =
      name === "depth" ? Math.max(size.counts.depth, counts.depth) : size.counts[name] + counts[name];
  }
  for (const [name, perItem] of perItemOfVariable) addPerItem(size.perItemOfVariable, name, perItem);
}

function addPerItem(perItemOfVariable: Map<string, PerItem>, name: string, perItem: PerItem): void {
  const sum = { ...(perItemOfVariable.get(name) ?? NO_ITEM) };
  for (const count of Object.keys(sum) as (keyof PerItem)[]) sum[count] += perItem[count];
  perItemOfVariable.set(name, sum);
}
