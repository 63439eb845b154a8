import {
  Lexer,
  Source,
  TokenKind,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { fieldsOf } from "../../schema/selected-fields.ts";
import { badRequest } from "../errors.ts";

/** In characters. The largest documents of clients have 45 kB: see {@link MAX_TOKENS}. */
const MAX_LENGTH = 65_536;
/**
 * A query of 100 aliased wallets with all scalar fields has 4,805 as Apollo and urql print it, with
 * `__typename` in each object.
 */
const MAX_TOKENS = 6_000;
/** Of a name or a literal. A signature has 88 characters, and errors repeat aliases. */
const MAX_VALUE_LENGTH = 128;
/** The parser recurses. */
const MAX_BRACKETS = 20;
const MAX_DIRECTIVES = 200;
/** Operations and fragments. Validation compares the fields of all pairs of fragments. */
const MAX_DEFINITIONS = 60;
/**
 * Validation compares all pairs of fields that have one response name. A comparison, and the
 * selection of a field, is one step; {@link CHARACTERS_PER_STEP} of arguments are another.
 */
const MAX_STEPS = 30_000;
const CHARACTERS_PER_STEP = 10;

/**
 * Counts the tokens of a document's text. Throws GraphQLError BAD_REQUEST above a limit, or a
 * syntax error. Nothing else looks at a text before.
 */
export function countTokens(text: string): number {
  if (text.length > MAX_LENGTH) throw tooMany("characters", MAX_LENGTH);
  const lexer = new Lexer(new Source(text));
  let tokens = 0;
  let depth = 0;
  let directives = 0;
  for (;;) {
    const { kind, value } = lexer.advance();
    if (kind === TokenKind.EOF) return tokens;
    if (++tokens > MAX_TOKENS) throw tooMany("tokens", MAX_TOKENS);
    if (OPENING.includes(kind) && ++depth > MAX_BRACKETS)
      throw tooMany("levels of brackets", MAX_BRACKETS);
    if (CLOSING.includes(kind)) depth--;
    if (kind === TokenKind.AT && ++directives > MAX_DIRECTIVES)
      throw tooMany("directives", MAX_DIRECTIVES);
    if (value && value.length > MAX_VALUE_LENGTH)
      throw tooMany("characters in a name or a value", MAX_VALUE_LENGTH);
  }
}

const OPENING = [TokenKind.BRACE_L, TokenKind.PAREN_L, TokenKind.BRACKET_L];
const CLOSING = [TokenKind.BRACE_R, TokenKind.PAREN_R, TokenKind.BRACKET_R];

/** Limits what validation costs. Throws GraphQLError BAD_REQUEST. */
export function limitDocument(
  { definitions }: DocumentNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): void {
  if (definitions.length > MAX_DEFINITIONS)
    throw tooMany("operations and fragments", MAX_DEFINITIONS);
  let steps = 0;
  /** Sets whose fields are merged. */
  const mergedSets = definitions.flatMap((each) =>
    "selectionSet" in each ? [[each.selectionSet] as readonly SelectionSetNode[]] : [],
  );
  function countSteps(count: number): true {
    steps += count;
    if (steps > MAX_STEPS) throw tooMany("merged fields", MAX_STEPS);
    return true;
  }
  for (const sets of mergedSets) {
    const fields = fieldsOf(fragments, sets, () => countSteps(1));
    const byResponseName = Map.groupBy(fields, ({ alias, name }) => (alias ?? name).value);
    for (const same of byResponseName.values()) {
      const length = same.reduce((sum, field) => sum + argumentsLength(field), 0);
      countSteps((same.length - 1) * (same.length / 2 + length / CHARACTERS_PER_STEP));
      const nestedSets = same.flatMap(({ selectionSet }) => selectionSet ?? []);
      if (nestedSets.length > 0) mergedSets.push(nestedSets);
    }
  }
}

function argumentsLength({ arguments: args = [] }: FieldNode): number {
  return args.length === 0 ? 0 : args.at(-1)!.loc!.end - args[0]!.loc!.start;
}

const tooMany = (name: string, max: number) =>
  badRequest(`Too many ${name}: the maximum is ${max} per document.`);
