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
/** Relay's names of fragments have the name of a file. */
const MAX_NAME_LENGTH = 128;
/** Of a literal: a signature has 88 characters. */
const MAX_STRING_LENGTH = 256;
/** The parser recurses. */
const MAX_BRACKETS = 20;
const MAX_DIRECTIVES = 200;
const MAX_OPERATIONS = 10;
/** Validation compares the fields of all pairs of fragments. */
const MAX_FRAGMENTS = 50;
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
    const max = STRINGS.includes(kind) ? MAX_STRING_LENGTH : MAX_NAME_LENGTH;
    if (value && value.length > max) throw tooMany("characters in a name or a value", max);
  }
}

const OPENING = [TokenKind.BRACE_L, TokenKind.PAREN_L, TokenKind.BRACKET_L];
const CLOSING = [TokenKind.BRACE_R, TokenKind.PAREN_R, TokenKind.BRACKET_R];
const STRINGS = [TokenKind.STRING, TokenKind.BLOCK_STRING];

/** Limits what validation costs. Throws GraphQLError BAD_REQUEST. */
export function limitDocument(
  { definitions }: DocumentNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  operations: number,
): void {
  if (operations > MAX_OPERATIONS) throw tooMany("operations", MAX_OPERATIONS);
  if (definitions.length - operations > MAX_FRAGMENTS) throw tooMany("fragments", MAX_FRAGMENTS);
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
