import {
  getOperationAST,
  Lexer,
  parse,
  Source,
  TokenKind,
  validate,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
} from "graphql";
import { MAX_COLLECTS, MAX_WALLETS } from "../../schema/field-metadata.ts";
import { badRequest, shorten } from "../errors.ts";
import { countsWith, measureOperation, type Counts, type OperationSize } from "./operation-size.ts";

/** A hundred wallets written out with all their fields, each with a variable, have 3,205. */
const MAX_TOKENS = 4_000;
/** GraphiQL's introspection is 15 deep, everything else 3. The parser recurses, so deep documents need stack. */
const MAX_DEPTH = 20;
const MAX_DIRECTIVES = 200;
/** The first errors of a document are enough. */
const MAX_VALIDATION_ERRORS = 5;

/** What an operation may have, and the words for it. The first exceeded limit is reported. */
const LIMITS: readonly { readonly of: keyof Counts; readonly max: number; readonly words: string }[] = [
  { of: "wallets", max: MAX_WALLETS, words: "wallets" },
  { of: "collects", max: MAX_COLLECTS, words: "collects" },
  { of: "depth", max: MAX_DEPTH, words: "levels of nested fields" },
  { of: "rootFields", max: 100, words: "root fields" },
  { of: "fields", max: 2_000, words: "fields" },
  { of: "aliases", max: 200, words: "aliases" },
  // GraphiQL's query has 230. Each is resolved for every item of the lists it is in.
  { of: "introspection", max: 300, words: "introspection fields" },
];

type Variables = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Parses a text after checking that it is within a document's limits.
 *
 * @throws {GraphQLError} BAD_REQUEST, or a syntax error
 */
export function parseWithinLimits(text: string): DocumentNode {
  assertTextWithinLimits(text);
  return parse(text);
}

/**
 * Validates a document of which one operation is to run with these variables, after checking the limits of
 * that operation.
 *
 * @throws {GraphQLError} BAD_REQUEST
 */
export function validateWithinLimits(
  schema: GraphQLSchema,
  document: DocumentNode,
  { operationName, variables }: { operationName?: string | undefined; variables?: Variables },
): readonly GraphQLError[] {
  const operation = getOperationAST(document, operationName);
  const exceeded = operation && exceededLimit(measureOperation(schema, document, operation), variables);
  if (exceeded) throw badRequest(exceeded);
  const options = { maxErrors: MAX_VALIDATION_ERRORS, hideSuggestions: true };
  const errors = validate(schema, document, undefined, options);
  // graphql-js stops comparing fields of one name after a while and reports that without nodes.
  if (errors.length <= MAX_VALIDATION_ERRORS && errors.some(({ nodes }) => !nodes))
    throw badRequest("Too many fields with the same response name to validate the document.");
  return errors.map(shorten);
}

function assertTextWithinLimits(text: string): void {
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

// The message has no count: counting on is the work that the limit saves.
const textTooLarge = (max: number, words: string) =>
  badRequest(`Too many ${words}: the maximum is ${max} per document.`);

/** The limit that an operation exceeds with these variables, as a sentence for the caller; else undefined. */
export function exceededLimit(size: OperationSize, variables: Variables): string | undefined {
  const counts = countsWith(size, variables ?? {});
  for (const { of, max, words } of LIMITS) {
    if (counts[of] > max)
      return `Too many ${words}: ${counts[of]} requested, the maximum is ${max} per operation.`;
  }
  return undefined;
}
