import {
  Kind,
  Lexer,
  Source,
  TokenKind,
  type DocumentNode,
  type FieldNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from "graphql";
import { badRequest } from "./graphql-errors.ts";
import { fragmentsOf } from "./fields.ts";

/** Wallets of one operation, the handles of `wallets` among them: as many as one call to the network takes. */
export const MAX_WALLETS = 100;
/** Collects of one operation. They run one after the other. */
export const MAX_COLLECTS = 10;

/** A hundred wallets written out with all their fields take some 3,200. To validate takes up to their square. */
const MAX_TOKENS = 4_000;
/** GraphiQL's introspection is 15 deep, everything else 3. What is deeper would have to fit on the stack. */
const MAX_DEPTH = 20;
const MAX_DIRECTIVES = 200;

/** What an operation may have, and the words for it; the first that is exceeded is told. Fragments count wherever they are spread. */
const LIMITS = {
  wallets: { max: MAX_WALLETS, words: "wallets, with those of each handle of `wallets`" },
  collects: { max: MAX_COLLECTS, words: "collects" },
  depth: { max: MAX_DEPTH, words: "levels of fields" },
  rootFields: { max: 100, words: "root fields" },
  fields: { max: 2_000, words: "fields, with those of `wallets` once for each handle" },
  aliases: { max: 200, words: "aliases" },
  // GraphiQL's introspection has some 250. The lists in it repeat them.
  introspection: { max: 300, words: "fields of introspection" },
} as const satisfies Record<string, { max: number; words: string }>;

type Counts = Record<keyof typeof LIMITS, number>;

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
  /** Of the variables with handles that have a default: how many handles it is. */
  readonly defaults: ReadonlyMap<string, number>;
}

/**
 * Checks a text that has not been parsed yet, for whatever could make parsing or validating it expensive.
 *
 * @throws {GraphQLError} BAD_REQUEST, or the error of a token that is none
 */
export function assertTextWithinLimits(text: string): void {
  const lexer = new Lexer(new Source(text));
  let tokens = 0;
  let depth = 0;
  let directives = 0;
  for (let { kind } = lexer.advance(); kind !== TokenKind.EOF; { kind } = lexer.advance()) {
    if (++tokens > MAX_TOKENS) throw textTooLarge(MAX_TOKENS, "tokens");
    if (isOpening(kind) && ++depth > MAX_DEPTH) throw textTooLarge(MAX_DEPTH, "levels of brackets");
    if (isClosing(kind)) depth--;
    if (kind === TokenKind.AT && ++directives > MAX_DIRECTIVES)
      throw textTooLarge(MAX_DIRECTIVES, "directives");
  }
}

const isOpening = (kind: TokenKind) =>
  kind === TokenKind.BRACE_L || kind === TokenKind.PAREN_L || kind === TokenKind.BRACKET_L;
const isClosing = (kind: TokenKind) =>
  kind === TokenKind.BRACE_R || kind === TokenKind.PAREN_R || kind === TokenKind.BRACKET_R;

// How many it has is not told: to count on is the work that the limit spares.
const textTooLarge = (max: number, words: string) =>
  badRequest(`A document may have at most ${max} ${words}; this one has more.`);

/** Which limit an operation exceeds with these variables, in a sentence for its caller; else undefined. */
export function exceededLimit(
  { counts, handles, defaults }: OperationSize,
  variables: Readonly<Record<string, unknown>> | null | undefined,
): string | undefined {
  const total = { ...counts };
  for (const [name, each] of handles) {
    const isGiven = variables && Object.hasOwn(variables, name);
    const length = isGiven ? listLength(variables[name]) : (defaults.get(name) ?? 0);
    total.wallets += each.wallets * length;
    total.fields += each.fields * length;
  }
  for (const [name, { max, words }] of Object.entries(LIMITS)) {
    const count = total[name as keyof Counts];
    if (count > max) return `An operation may have at most ${max} ${words}; this one has ${count}.`;
  }
  return undefined;
}

/** Of a variable's value; GraphQL takes what is no list for a list of one. */
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

/** Adds what stands beside it. `rootFields` are the fields of a set itself, whatever its place. */
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
