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
import { DEFAULT_TRANSFERS, metadataOf } from "../../schema/field-metadata.ts";
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
type PerItem = Pick<
  Counts,
  "wallets" | "collects" | "listedCollects" | "mints" | "histories" | "transfers" | "fields"
>;

/** Pages of histories whose number of transfers is in a variable. */
interface Pages {
  /** How many of them the operation has, without those below a list in a variable. */
  count: number;
  /** How many each item of a list in a variable adds, by the variable's name. */
  readonly perItemOfVariable: Map<string, number>;
}

const NO_ITEMS: PerItem = {
  ...{ wallets: 0, collects: 0, listedCollects: 0, mints: 0 },
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
  readonly variableLength: ReturnType<typeof createVariableLength>;
  /** The default values of variables that are integers. */
  readonly defaultIntegers: ReadonlyMap<string, number>;
}

/** The counts of an operation with these variables. */
export function countsWith(
  { counts, perItemOfVariable, pagesOfVariable, variableLength, defaultIntegers }: OperationSize,
  variables: Variables,
): Counts {
  const total = { ...counts };
  for (const [name, perItem] of perItemOfVariable) addItems(total, perItem, variableLength(name, variables));
  for (const [name, pages] of pagesOfVariable) {
    const given = variables && Object.hasOwn(variables, name) ? variables[name] : defaultIntegers.get(name);
    const first = typeof given === "number" ? Math.max(0, given) : DEFAULT_TRANSFERS;
    total.transfers += first * pages.count;
    for (const [list, perItem] of pages.perItemOfVariable)
      total.transfers += first * perItem * variableLength(list, variables);
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
    const { counts, pagesOfVariable } = size;
    const cost = (field && metadataOf(field).cost) ?? {};
    const { wallets = 0, collects = 0, listedCollects = 0, perItemOf, transfersOf, mintsIn } = cost;
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
        listedCollects: counts.listedCollects + listedCollects,
        mints: counts.mints,
        histories: counts.histories,
        transfers: counts.transfers,
        fields: counts.fields,
      };
      Object.assign(counts, NO_ITEMS);
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

  const defaultIntegers = new Map<string, number>();
  for (const { variable, defaultValue } of operation.variableDefinitions ?? [])
    if (defaultValue?.kind === Kind.INT) defaultIntegers.set(variable.name.value, Number(defaultValue.value));
  const root = schema.getRootType(operation.operation) ?? undefined;
  return {
    ...measureSet(operation.selectionSet, root),
    variableLength: createVariableLength(operation),
    defaultIntegers,
  };
}

/** Adds the counts of all items in a field's list argument. */
function addList({ counts, perItemOfVariable }: Size, node: FieldNode, argument: string, perItem: PerItem) {
  const list = argumentOf(node, argument);
  if (list?.kind === Kind.VARIABLE) addPerItem(perItemOfVariable, list.name.value, perItem);
  else addItems(counts, perItem, literalLength(list));
}

const emptySize = (): Size => ({
  counts: {
    ...{ depth: 0, rootFields: 0, fields: 0, aliases: 0, introspection: 0 },
    ...NO_ITEMS,
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
