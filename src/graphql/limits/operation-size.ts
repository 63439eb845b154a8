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
  type ValueNode,
} from "graphql";
import { DEFAULT_TRANSFERS, metadataOf } from "../../schema/field-metadata.ts";

/** The counts of an operation. A fragment counts every time it is spread. */
export interface Counts {
  wallets: number;
  collects: number;
  /** Coins that fields name. */
  mints: number;
  /** Pages of histories: each costs a request. */
  histories: number;
  /** The most transfers that these pages can have. */
  transfers: number;
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
type PerItem = Pick<Counts, "wallets" | "collects" | "mints" | "histories" | "transfers" | "fields">;

/** Pages of histories whose number of transfers is in a variable. */
interface Pages {
  /** How many of them the operation has, without those below a list in a variable. */
  count: number;
  /** How many each item of a list in a variable adds, by the variable's name. */
  readonly perItemOfVariable: Map<string, number>;
}

const NO_ITEMS: PerItem = {
  ...{ wallets: 0, collects: 0, mints: 0 },
  ...{ histories: 0, transfers: 0, fields: 0 },
};

/** The size of a selection. `counts` leaves out lists in variables, because their length is known only at run time. */
interface Size {
  readonly counts: Counts;
  /** What each item of a list in a variable adds, by the variable's name. Fields with list arguments are not nested. */
  readonly perItemOfVariable: Map<string, PerItem>;
  /** By the name of the variable that holds their number of transfers. */
  readonly pagesOfVariable: Map<string, Pages>;
}

/** The size of an operation. */
export interface OperationSize extends Size {
  /** Each variable's default value: the length of a list, or an integer. */
  readonly defaults: ReadonlyMap<string, number>;
}

/** The counts of an operation with these variables. */
export function countsWith(
  { counts, perItemOfVariable, pagesOfVariable, defaults }: OperationSize,
  variables: Readonly<Record<string, unknown>>,
): Counts {
  const total = { ...counts };
  const lengthOf = (name: string) =>
    Object.hasOwn(variables, name) ? listLength(variables[name]) : (defaults.get(name) ?? 0);
  for (const [name, perItem] of perItemOfVariable) addItems(total, perItem, lengthOf(name));
  for (const [name, pages] of pagesOfVariable) {
    const given = Object.hasOwn(variables, name) ? variables[name] : defaults.get(name);
    const first = typeof given === "number" ? Math.max(0, given) : DEFAULT_TRANSFERS;
    total.transfers += first * pages.count;
    for (const [list, perItem] of pages.perItemOfVariable)
      total.transfers += first * perItem * lengthOf(list);
  }
  return total;
}

/** GraphQL coerces a value that is not a list to a list of one. */
function listLength(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return value === null ? 0 : 1;
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
    const { counts, pagesOfVariable } = size;
    const {
      wallets = 0,
      collects = 0,
      perItemOf,
      transfersOf,
      mintsIn,
    } = (field && metadataOf(field).cost) ?? {};
    if (transfersOf !== undefined) {
      const first = argumentOf(node, transfersOf);
      counts.histories++;
      if (first?.kind === Kind.VARIABLE)
        pagesOfVariable.set(first.name.value, { count: 1, perItemOfVariable: new Map() });
      else
        counts.transfers += first?.kind === Kind.INT ? Math.max(0, Number(first.value)) : DEFAULT_TRANSFERS;
    }
    if (perItemOf === undefined) {
      counts.wallets += wallets;
      counts.collects += collects;
    } else {
      const perItem = {
        wallets: counts.wallets + wallets,
        collects: counts.collects + collects,
        mints: counts.mints,
        histories: counts.histories,
        transfers: counts.transfers,
        fields: counts.fields,
      };
      counts.wallets = counts.collects = counts.mints = 0;
      counts.histories = counts.transfers = counts.fields = 0;
      const list = argumentOf(node, perItemOf);
      for (const pages of pagesOfVariable.values()) {
        if (list?.kind === Kind.VARIABLE) pages.perItemOfVariable.set(list.name.value, pages.count);
        pages.count = list?.kind === Kind.VARIABLE ? 0 : pages.count * literalLength(list);
      }
      addList(size, node, perItemOf, perItem);
    }
    if (mintsIn !== undefined) addList(size, node, mintsIn, { ...NO_ITEMS, mints: 1 });
    counts.depth++;
    counts.rootFields = 1;
    counts.fields++;
    if (node.alias) counts.aliases++;
    if (name === "__schema" || name === "__type") counts.introspection = counts.fields;
    return size;
  }

  const defaults = new Map(
    (operation.variableDefinitions ?? []).map(({ variable, defaultValue }) => [
      variable.name.value,
      defaultValue?.kind === Kind.INT ? Number(defaultValue.value) : literalLength(defaultValue),
    ]),
  );
  const root = schema.getRootType(operation.operation) ?? undefined;
  return { ...measureSet(operation.selectionSet, root), defaults };
}

function argumentOf(node: FieldNode, argument: string): ValueNode | undefined {
  return node.arguments?.find(({ name }) => name.value === argument)?.value;
}

/** Adds what the items of a field's list argument count. */
function addList({ counts, perItemOfVariable }: Size, node: FieldNode, argument: string, perItem: PerItem) {
  const list = argumentOf(node, argument);
  if (list?.kind === Kind.VARIABLE) addPerItem(perItemOfVariable, list.name.value, perItem);
  else addItems(counts, perItem, literalLength(list));
}

function literalLength(value: ValueNode | undefined): number {
  if (value?.kind === Kind.LIST) return value.values.length;
  return value === undefined || value.kind === Kind.NULL ? 0 : 1;
}

const emptySize = (): Size => ({
  counts: {
    ...{ depth: 0, rootFields: 0, fields: 0, aliases: 0, introspection: 0 },
    ...{ wallets: 0, collects: 0, mints: 0, histories: 0, transfers: 0 },
  },
  perItemOfVariable: new Map(),
  pagesOfVariable: new Map(),
});

function addItems(counts: PerItem, perItem: PerItem, length: number): void {
  for (const name of Object.keys(NO_ITEMS) as (keyof PerItem)[]) counts[name] += perItem[name] * length;
}

/** Adds the size of a sibling selection. */
function add(size: Size, { counts, perItemOfVariable, pagesOfVariable }: Size): void {
  for (const name of Object.keys(counts) as (keyof Counts)[]) {
    size.counts[name] =
      name === "depth" ? Math.max(size.counts.depth, counts.depth) : size.counts[name] + counts[name];
  }
  for (const [name, perItem] of perItemOfVariable) addPerItem(size.perItemOfVariable, name, perItem);
  for (const [name, { count, perItemOfVariable: perItem }] of pagesOfVariable) {
    const known = size.pagesOfVariable.get(name);
    const sum: Pages = {
      count: (known?.count ?? 0) + count,
      perItemOfVariable: new Map(known?.perItemOfVariable),
    };
    for (const [list, each] of perItem)
      sum.perItemOfVariable.set(list, (sum.perItemOfVariable.get(list) ?? 0) + each);
    size.pagesOfVariable.set(name, sum);
  }
}

function addPerItem(perItemOfVariable: Map<string, PerItem>, name: string, perItem: PerItem): void {
  const sum = { ...(perItemOfVariable.get(name) ?? NO_ITEMS) };
  addItems(sum, perItem, 1);
  perItemOfVariable.set(name, sum);
}
