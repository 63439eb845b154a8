import {
  Kind,
  type DocumentNode,
  type FieldNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from "graphql";
import { fragmentsOf } from "../selected-fields.ts";

/** What is counted of an operation, each fragment wherever it is spread. */
export interface Counts {
  wallets: number;
  collects: number;
  /** Of fields in fields. */
  depth: number;
  /** The fields of a set itself: of an operation's, those at its root. */
  rootFields: number;
  /** At all depths; those of a wallet in `wallets` once for each handle. */
  fields: number;
  aliases: number;
  /** Fields of introspection, at all depths. */
  introspection: number;
}

/** A variable with handles: what each of them adds. */
interface Handles {
  wallets: number;
  fields: number;
}

/** What a selection comes to. Handles in variables are known only when it runs, and left out of the counts. */
interface Size {
  readonly counts: Counts;
  readonly handles: Map<string, Handles>;
}

/** What an operation comes to. */
export interface OperationSize extends Size {
  /** Of each variable: how many handles its default is. */
  readonly defaults: ReadonlyMap<string, number>;
}

/** What an operation comes to with these variables. */
export function countsWith(
  { counts, handles, defaults }: OperationSize,
  variables: Readonly<Record<string, unknown>>,
): Counts {
  const total = { ...counts };
  for (const [name, each] of handles) {
    const length = Object.hasOwn(variables, name) ? listLength(variables[name]) : (defaults.get(name) ?? 0);
    total.wallets += each.wallets * length;
    total.fields += each.fields * length;
  }
  return total;
}

/** GraphQL takes what is no list for a list of one. */
function listLength(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return value === null ? 0 : 1;
}

/**
 * Measures an operation of a document that need not be valid. Each fragment is walked once, however often
 * it is spread.
 */
export function measureOperation(document: DocumentNode, operation: OperationDefinitionNode): OperationSize {
  const fragments = fragmentsOf(document);
  const measured = new Map<string, Size>();

  function measureFragment(name: string): Size {
    const known = measured.get(name);
    if (known) return known;
    // Meanwhile it is nothing, for one that spreads itself, which is not valid.
    measured.set(name, emptySize());
    const set = fragments.get(name);
    const size = set ? measureSet(set) : emptySize();
    measured.set(name, size);
    return size;
  }

  function measureSet({ selections }: SelectionSetNode): Size {
    const size = emptySize();
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) add(size, measureField(selection));
      else if (selection.kind === Kind.INLINE_FRAGMENT) add(size, measureSet(selection.selectionSet));
      else add(size, measureFragment(selection.name.value));
    }
    return size;
  }

  function measureField({ name, alias, selectionSet, arguments: args = [] }: FieldNode): Size {
    const { counts, handles } = selectionSet ? measureSet(selectionSet) : emptySize();
    const below = counts.fields;
    counts.depth++;
    counts.rootFields = 1;
    counts.fields++;
    if (alias) counts.aliases++;
    switch (name.value) {
      case "__schema":
      case "__type":
        counts.introspection = counts.fields;
        break;
      case "collect":
        counts.collects++;
        break;
      case "wallet":
      case "walletById":
        counts.wallets++;
        break;
      case "wallets": {
        const given = args.find((arg) => arg.name.value === "handles")?.value;
        const length = given?.kind === Kind.VARIABLE ? 0 : literalLength(given);
        counts.wallets += length;
        counts.fields = 1 + below * length;
        if (given?.kind === Kind.VARIABLE) handles.set(given.name.value, { wallets: 1, fields: below });
      }
    }
    return { counts, handles };
  }

  const defaults = new Map(
    (operation.variableDefinitions ?? []).map(({ variable, defaultValue }) => [
      variable.name.value,
      defaultValue ? literalLength(defaultValue) : 0,
    ]),
  );
  return { ...measureSet(operation.selectionSet), defaults };
}

function literalLength(value: ValueNode | undefined): number {
  if (value?.kind === Kind.LIST) return value.values.length;
  return value === undefined || value.kind === Kind.NULL ? 0 : 1;
}

const emptySize = (): Size => ({
  counts: { depth: 0, rootFields: 0, fields: 0, aliases: 0, introspection: 0, wallets: 0, collects: 0 },
  handles: new Map(),
});

/** Adds what stands beside it. */
function add(size: Size, { counts, handles }: Size): void {
  for (const name of Object.keys(counts) as (keyof Counts)[]) {
    size.counts[name] =
      name === "depth" ? Math.max(size.counts.depth, counts.depth) : size.counts[name] + counts[name];
  }
  for (const [name, { wallets, fields }] of handles) {
    const earlier = size.handles.get(name) ?? { wallets: 0, fields: 0 };
    size.handles.set(name, { wallets: earlier.wallets + wallets, fields: earlier.fields + fields });
  }
}
