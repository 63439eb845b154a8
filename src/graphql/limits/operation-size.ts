import {
  Kind,
  OperationTypeNode,
  valueFromASTUntyped,
  type FieldNode,
  type FragmentDefinitionNode,
  type InlineFragmentNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { MAX_MINTS } from "../../contract/mint.ts";
import { isObject } from "../../contract/parse-json.ts";
import {
  accountsOf,
  ACCOUNTS_PER_REQUEST,
  DEFAULT_TRANSFERS,
  FIELD_COSTS,
  MAX_COLLECTS,
  MAX_LISTED_COLLECTS,
  MAX_MINTS_PER_OPERATION,
  MAX_TRANSFERS,
  MAX_WALLETS,
  requestsOfHistory,
} from "../../schema/field-costs.ts";
import type { Parsed } from "../documents.ts";
import { badRequest } from "../errors.ts";

/** The values of an operation's variables, as the caller sends them. */
export type OperationVariables = Readonly<Record<string, unknown>> | null | undefined;

/** The most of an operation, and the names for messages. A fragment counts wherever it is spread. */
const LIMITS = {
  /** The entries in the lists of `collectMany` fields. */
  listedCollects: [MAX_LISTED_COLLECTS, "entries to collect"],
  wallets: [MAX_WALLETS, "wallets"],
  /** Fields that collect for one account. */
  collects: [MAX_COLLECTS, "collects"],
  /** The coins named, counted for each wallet. */
  mints: [MAX_MINTS_PER_OPERATION, "mints"],
  /** The most transfers that all history pages together can have. */
  transfers: [MAX_TRANSFERS, "transfers"],
  /** An introspection with 15 levels of `ofType` has 22, every other operation at most 6. */
  depth: [25, "levels of nested fields"],
  rootFields: [100, "root fields"],
  /**
   * 100 wallets with every field but those with limits of their own. Below a field with a list
   * argument, each field counts once per item: each can fail, and an error costs much more than a
   * field. `__typename` without an alias is free, because clients add it to every object, and it
   * runs once in each.
   */
  fields: [2_300, "fields"],
  aliases: [200, "aliases"],
  /** An introspection with 15 levels of `ofType` has 360. Below a list, a field runs per item. */
  introspection: [500, "introspection fields"],
  /** Fragments that are spread, and inline fragments. */
  spreads: [3_000, "fragments"],
} as const satisfies Readonly<Record<string, readonly [max: number, name: string]>>;
type Count = keyof typeof LIMITS;

/** The counts of an operation that asks for nothing. */
const NOTHING = Object.fromEntries(Object.keys(LIMITS).map((name) => [name, 0])) as Record<
  Count,
  number
>;

/** What an operation asks for. Fields that are skipped count too. */
export interface OperationSize {
  /**
   * Requests taken from the rate limit: for a mutation, one per account to collect; for a query,
   * the chain's accounts / {@link ACCOUNTS_PER_REQUEST}, rounded up. At least one, plus those of
   * histories.
   */
  readonly requests: number;
  /** The requests that histories cost. */
  readonly historyRequests: number;
  readonly counts: Readonly<Record<Count, number>>;
}

/** Where a selection set is. */
interface Place {
  readonly depth: number;
  /** How often its fields run: the product of the lengths of list arguments. */
  readonly times: number;
  /** The coins that the root field's wallet names; undefined outside a root field. */
  readonly wallet: { mints: Set<unknown> | undefined } | undefined;
  readonly isIntrospection: boolean;
}

/**
 * Counts before validation, so the document and the variables may be invalid: an unknown field only
 * counts as a field. Throws GraphQLError BAD_REQUEST or INVALID_MINT above a limit.
 */
export function measureOperation(
  fragments: Parsed["fragments"],
  operation: OperationDefinitionNode,
  variables?: OperationVariables,
): OperationSize {
  const counts = { ...NOTHING };
  let accounts = 0;
  let historyRequests = 0;
  /** Fragments around the present one: one that spreads itself is invalid. */
  const openFragments = new Set<FragmentDefinitionNode | InlineFragmentNode>();
  // Without a prototype, as a variable may be called `constructor`.
  const values: Record<string, unknown> = { __proto__: null };
  for (const { variable, defaultValue } of operation.variableDefinitions ?? [])
    if (defaultValue) values[variable.name.value] = valueFromASTUntyped(defaultValue);
  Object.assign(values, variables);

  function count(what: Count, amount = 1): void {
    const [max, name] = LIMITS[what];
    counts[what] += amount;
    if (counts[what] <= max) return;
    const code = what === "mints" ? "INVALID_MINT" : undefined;
    throw badRequest(`Too many ${name}: the maximum is ${max} per operation.`, { code });
  }

  /** An argument's value. Does not coerce it: coercion throws for an invalid value. */
  function argumentOf(node: FieldNode, name: string | undefined): unknown {
    const value = node.arguments?.find((argument) => argument.name.value === name)?.value;
    return value && valueFromASTUntyped(value, values);
  }

  function countSet({ selections }: SelectionSetNode, place: Place): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        countField(selection, place);
        continue;
      }
      count("spreads");
      const isInline = selection.kind === Kind.INLINE_FRAGMENT;
      const fragment = isInline ? selection : fragments.get(selection.name.value);
      if (!fragment || openFragments.has(fragment)) continue;
      openFragments.add(fragment);
      countSet(fragment.selectionSet, place);
      openFragments.delete(fragment);
    }
  }

  function countField(node: FieldNode, place: Place): void {
    const name = node.name.value;
    const isRoot = place.depth === 0;
    const costs = isRoot ? FIELD_COSTS.root : FIELD_COSTS.nested;
    const { mintsIn, perItemOf, transfersOf, ...cost } = costs.get(name) ?? {};
    const isFree = name === "__typename" && !node.alias;
    const isIntrospection = place.isIntrospection || name === "__schema" || name === "__type";
    const depth = place.depth + 1;
    const items = perItemOf === undefined ? [undefined] : toList(argumentOf(node, perItemOf));
    const times = place.times * items.length;
    const wallet = place.wallet ?? { mints: undefined };

    count("depth", Math.max(0, depth - counts.depth));
    for (const what of ["wallets", "collects", "listedCollects"] as const)
      count(what, times * (cost[what] ?? 0));
    if (isRoot) count("rootFields");
    if (node.alias) count("aliases");
    if (!isFree) count("fields", place.times);
    if (!isFree && isIntrospection) count("introspection");
    if (transfersOf !== undefined) {
      const value = argumentOf(node, transfersOf);
      const transfers = typeof value === "number" ? Math.max(0, value) : DEFAULT_TRANSFERS;
      count("transfers", times * transfers);
      historyRequests += times * requestsOfHistory(transfers);
    }
    historyRequests += times * (cost.historyPages ?? 0);
    if (mintsIn !== undefined && perItemOf === undefined) {
      wallet.mints ??= new Set();
      for (const mint of toMints(argumentOf(node, mintsIn))) wallet.mints.add(mint);
    }
    if (node.selectionSet) countSet(node.selectionSet, { depth, times, wallet, isIntrospection });
    if (!isRoot) return;
    for (const item of items) {
      const ofItem = isObject(item) && mintsIn !== undefined ? toMints(item[mintsIn]) : [];
      const coins = new Set([...(wallet.mints ?? []), ...ofItem]).size;
      count("mints", coins);
      if (wallet.mints) accounts += accountsOf(coins);
    }
  }

  const root = { depth: 0, times: 1, wallet: undefined, isIntrospection: false };
  countSet(operation.selectionSet, root);
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const sum = isQuery
    ? Math.ceil(accounts / ACCOUNTS_PER_REQUEST)
    : counts.collects + counts.listedCollects;
  return { requests: Math.max(1, sum) + historyRequests, historyRequests, counts };
}

/** GraphQL coerces a value that is not a list to a list of one. */
function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
}

/** Up to one above a field's maximum: with more, the field fails anyway. */
const toMints = (value: unknown) => toList(value).slice(0, MAX_MINTS + 1);
