import {
  getNamedType,
  isInterfaceType,
  isObjectType,
  Kind,
  OperationTypeNode,
  valueFromASTUntyped,
  type DocumentNode,
  type FieldNode,
  type FragmentSpreadNode,
  type GraphQLInterfaceType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type InlineFragmentNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from "graphql";
import { MAX_MINTS } from "../../contract/mint.ts";
import {
  accountsOf,
  ACCOUNTS_PER_REQUEST,
  costOf,
  DEFAULT_TRANSFERS,
  MAX_MINTS_PER_OPERATION,
  requestsOfHistory,
} from "../../schema/field-costs.ts";
import { fragmentsOf } from "../../schema/selected-fields.ts";

/** The values of an operation's variables, as the caller sends them. */
export type OperationVariables = Readonly<Record<string, unknown>> | null | undefined;

/** The counts of an operation. A fragment counts every time it is spread. */
export interface Counts {
  wallets: number;
  /** Fields that collect for one account. */
  collects: number;
  /** The entries in the lists of `collectMany` fields. */
  listedCollects: number;
  /** The coins named, counted for each wallet. */
  mints: number;
  /** The chain accounts that are read for balances. */
  accounts: number;
  /** The requests that history pages cost. */
  historyRequests: number;
  /** The most transfers that all history pages together can have. */
  transfers: number;
  /**
   * At all depths. Below a field with a list argument, each field counts once per item. A selection
   * set's first `__typename` without an alias is free, because clients add it to every object.
   */
  fields: number;
  depth: number;
  /** The fields directly in a selection set; for an operation, its root fields. */
  rootFields: number;
  aliases: number;
  /** Fragments that are spread, and inline fragments. */
  spreads: number;
  /** Introspection fields, at all depths. */
  introspection: number;
}

interface Measured extends Counts {
  /**
   * The coins that a wallet's fields name. The root field adds them to `mints`. Undefined if none
   * reads a balance.
   */
  named: Set<unknown> | undefined;
}

/** The counts that a list argument multiplies by its number of items. */
const PER_ITEM = [
  ...(["wallets", "collects", "listedCollects", "mints", "accounts"] as const),
  ...(["historyRequests", "transfers", "fields"] as const),
];
const PER_DOCUMENT = ["rootFields", "aliases", "spreads", "introspection"] as const;

const NOTHING = {
  ...Object.fromEntries([...PER_ITEM, ...PER_DOCUMENT, "depth"].map((count) => [count, 0])),
  named: undefined,
} as Readonly<Measured>;

export interface OperationSize {
  readonly counts: Counts;
  /**
   * Requests taken from the rate limit: for a mutation, one per account to collect; for a query,
   * `accounts` / {@link ACCOUNTS_PER_REQUEST}, rounded up. At least one, plus `historyRequests`.
   * Skipped fields count too.
   */
  readonly requests: number;
  /** Whether other variables can change the size. */
  readonly dependsOnVariables: boolean;
}

/**
 * The document and the variables may be invalid: an unknown field only counts as a field. Walks a
 * fragment once, whatever type it is spread in: a fragment on an interface counts the interface's
 * fields, and what it spreads on an object type counts that type's.
 */
export function measureOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables?: OperationVariables,
): OperationSize {
  const fragments = fragmentsOf(document);
  const countsByFragment = new Map<string, Readonly<Measured>>();
  // Without a prototype, as a variable may be called `constructor`.
  const values: Record<string, unknown> = { __proto__: null };
  for (const { variable, defaultValue } of operation.variableDefinitions ?? [])
    if (defaultValue) values[variable.name.value] = valueFromASTUntyped(defaultValue);
  Object.assign(values, variables);
  const root = schema.getRootType(operation.operation) ?? undefined;
  let dependsOnVariables = false;

  /**
   * Returns an argument's value. Does not coerce it to the argument's type: coercion throws for an
   * invalid value.
   */
  function argumentOf(node: FieldNode, name: string): unknown {
    const value = node.arguments?.find((argument) => argument.name.value === name)?.value;
    if (!value) return undefined;
    dependsOnVariables ||= hasVariable(value);
    return valueFromASTUntyped(value, values);
  }

  const listOf = (node: FieldNode, argument: string) => toList(argumentOf(node, argument));

  function measureFragment(name: string): Readonly<Measured> {
    const knownCounts = countsByFragment.get(name);
    if (knownCounts) return knownCounts;
    // Empty until the fragment is measured: otherwise a fragment that spreads itself (which is
    // invalid) would recurse.
    countsByFragment.set(name, NOTHING);
    const fragment = fragments.get(name);
    const counts = fragment
      ? measureSet(fragment.selectionSet, fieldsType(fragment.typeCondition.name.value))
      : NOTHING;
    countsByFragment.set(name, counts);
    return counts;
  }

  function measureSpread(
    spread: FragmentSpreadNode | InlineFragmentNode,
    parent: FieldsType | undefined,
  ): Readonly<Measured> {
    if (spread.kind === Kind.FRAGMENT_SPREAD) return measureFragment(spread.name.value);
    const condition = spread.typeCondition?.name.value;
    return measureSet(spread.selectionSet, condition ? fieldsType(condition) : parent);
  }

  function fieldsType(name: string): FieldsType | undefined {
    return toFieldsType(schema.getType(name));
  }

  function measureSet({ selections }: SelectionSetNode, parent: FieldsType | undefined): Measured {
    const total = { ...NOTHING };
    let hasTypename = false;
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const isTypename = selection.name.value === "__typename" && !selection.alias;
        if (isTypename && !hasTypename) total.fields--;
        hasTypename ||= isTypename;
        addField(total, selection, parent);
      } else {
        total.spreads++;
        add(total, measureSpread(selection, parent));
      }
    }
    return total;
  }

  function addField(total: Measured, node: FieldNode, parent: FieldsType | undefined): void {
    const name = node.name.value;
    const field = parent?.getFields()[name];
    const type = field && getNamedType(field.type);
    const counts = node.selectionSet
      ? measureSet(node.selectionSet, toFieldsType(type))
      : { ...NOTHING };
    counts.depth++;
    counts.rootFields = 1;
    if (node.alias) counts.aliases++;
    if (name === "__schema" || name === "__type") counts.introspection = counts.fields + 1;
    const {
      transfersOf,
      historyPages = 0,
      perItemOf,
      mintsIn,
      ...cost
    } = (field && costOf(field)) ?? {};
    counts.wallets += cost.wallets ?? 0;
    counts.collects += cost.collects ?? 0;
    counts.listedCollects += cost.listedCollects ?? 0;
    if (transfersOf !== undefined) {
      const value = argumentOf(node, transfersOf);
      const transfers = typeof value === "number" ? Math.max(0, value) : DEFAULT_TRANSFERS;
      counts.transfers += transfers;
      counts.historyRequests += requestsOfHistory(transfers);
    }
    counts.historyRequests += historyPages * requestsOfHistory(0);
    const items = perItemOf === undefined ? [undefined] : listOf(node, perItemOf);
    const mintsOf = (item: unknown) =>
      mintsIn === undefined || perItemOf === undefined ? [] : toList(memberOf(item, mintsIn));
    if (mintsIn !== undefined && perItemOf === undefined)
      addNames((counts.named ??= new Set()), upToTooMany(listOf(node, mintsIn)));
    if (parent === root) {
      const { named: coinNames } = counts;
      counts.named = undefined;
      for (const item of items) {
        const coins = countNames(coinNames, upToTooMany(mintsOf(item)));
        total.mints += coins;
        if (coinNames) total.accounts += accountsOf(coins);
      }
    }
    add(total, counts, items.length);
    total.fields++;
  }

  const counts = measureSet(operation.selectionSet, root);
  const sum =
    operation.operation === OperationTypeNode.QUERY
      ? Math.ceil(counts.accounts / ACCOUNTS_PER_REQUEST)
      : counts.collects + counts.listedCollects;
  return { counts, requests: Math.max(1, sum) + counts.historyRequests, dependsOnVariables };
}

/** The types that have fields. */
type FieldsType = GraphQLObjectType | GraphQLInterfaceType;

function toFieldsType(type: GraphQLNamedType | undefined): FieldsType | undefined {
  return isObjectType(type) || isInterfaceType(type) ? type : undefined;
}

/** Whether a value of the document is a variable, or has one in a list or an object. */
export function hasVariable(value: ValueNode): boolean {
  if (value.kind === Kind.LIST) return value.values.some(hasVariable);
  if (value.kind === Kind.OBJECT) return value.fields.some((field) => hasVariable(field.value));
  return value.kind === Kind.VARIABLE;
}

/** GraphQL coerces a value that is not a list to a list of one. */
function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** A field's mints, up to one above the field's maximum: with more, the field fails anyway. */
const upToTooMany = (mints: readonly unknown[]) => mints.slice(0, MAX_MINTS + 1);

/** Adds mints to those of a wallet, up to one above the most that an operation may name. */
function addNames(names: Set<unknown>, mints: Iterable<unknown>): void {
  for (const mint of mints) {
    if (names.size > MAX_MINTS_PER_OPERATION) return;
    names.add(mint);
  }
}

/** How many different mints a wallet and an item of a list name together. */
function countNames(names: ReadonlySet<unknown> | undefined, mints: readonly unknown[]): number {
  const others = new Set(mints.filter((mint) => !names?.has(mint)));
  return (names?.size ?? 0) + others.size;
}

/**
 * Adds the counts of a sibling selection. `items`: the length of its list argument, if it has one.
 */
function add(total: Measured, counts: Readonly<Measured>, items = 1): void {
  for (const count of PER_ITEM) total[count] += counts[count] * items;
  for (const count of PER_DOCUMENT) total[count] += counts[count];
  total.depth = Math.max(total.depth, counts.depth);
  if (counts.named) addNames((total.named ??= new Set()), counts.named);
}
