import {
  assertObjectType,
  getNamedType,
  isObjectType,
  Lexer,
  Source,
  TokenKind,
  type GraphQLError,
  type GraphQLObjectType,
} from "graphql";
import type { ErrorCode } from "../../contract/error-codes.ts";
import {
  MAX_COLLECTS,
  MAX_LISTED_COLLECTS,
  MAX_MINTS_PER_OPERATION,
  MAX_TRANSFERS,
  MAX_WALLETS,
} from "../../schema/field-costs.ts";
import { schema } from "../../schema/schema.ts";
import { badRequest } from "../errors.ts";
import type { Counts } from "./operation-size.ts";

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
/** GraphiQL's introspection is 15 deep, every other operation at most 6. The parser recurses. */
const MAX_DEPTH = 20;
const MAX_DIRECTIVES = 200;

/** Fields of a wallet that have limits or costs of their own. */
const LIMITED = ["history", "coins", "coinsSeen"];

/**
 * The fields of an operation: 100 wallets with every field but the {@link LIMITED}. Each field can
 * fail, and an error costs much more than a field.
 */
export const MAX_FIELDS =
  MAX_WALLETS * (1 + fieldsBelow(assertObjectType(schema.getType("Wallet"))));

/** Counts an object type's fields, and the fields of their types. */
function fieldsBelow(type: GraphQLObjectType): number {
  return Object.entries(type.getFields())
    .filter(([name]) => !LIMITED.includes(name))
    .map(([, field]) => getNamedType(field.type))
    .reduce((sum, below) => sum + 1 + (isObjectType(below) ? fieldsBelow(below) : 0), 0);
}

/**
 * The limits of an operation, with their names for messages. The first exceeded limit is reported.
 */
const LIMITS: readonly {
  readonly count: keyof Counts;
  readonly max: number;
  readonly name: string;
  readonly code?: ErrorCode;
}[] = [
  { count: "listedCollects", max: MAX_LISTED_COLLECTS, name: "entries to collect" },
  { count: "wallets", max: MAX_WALLETS, name: "wallets" },
  { count: "collects", max: MAX_COLLECTS, name: "collects" },
  { count: "mints", max: MAX_MINTS_PER_OPERATION, name: "mints", code: "INVALID_MINT" },
  { count: "transfers", max: MAX_TRANSFERS, name: "transfers" },
  { count: "depth", max: MAX_DEPTH, name: "levels of nested fields" },
  { count: "rootFields", max: 100, name: "root fields" },
  { count: "fields", max: MAX_FIELDS, name: "fields" },
  { count: "aliases", max: 200, name: "aliases" },
  // GraphiQL's introspection has 230. Fields below a list are resolved once per item.
  { count: "introspection", max: 300, name: "introspection fields" },
];

/**
 * Counts the tokens of a document's text. Throws GraphQLError BAD_REQUEST above a limit, or a
 * syntax error. Nothing else looks at a text before.
 */
export function countTokens(text: string): number {
  const lexer = new Lexer(new Source(text));
  let tokens = 0;
  let depth = 0;
  let directives = 0;
  for (;;) {
    const { kind, value, end } = lexer.advance();
    if (end > MAX_LENGTH)
      throw badRequest(
        `The document is too long: ${text.length} characters given, the maximum is ${MAX_LENGTH}.`,
      );
    if (kind === TokenKind.EOF) break;
    if (++tokens > MAX_TOKENS) throw textTooLarge(MAX_TOKENS, "tokens");
    if (isOpening(kind) && ++depth > MAX_DEPTH) throw textTooLarge(MAX_DEPTH, "levels of brackets");
    if (isClosing(kind)) depth--;
    if (kind === TokenKind.AT && ++directives > MAX_DIRECTIVES)
      throw textTooLarge(MAX_DIRECTIVES, "directives");
    if (isString(kind)) assertShort(value, MAX_STRING_LENGTH, "A string in the document");
    else assertShort(value, MAX_NAME_LENGTH, "A name or number in the document");
  }
  return tokens;
}

function assertShort(value: string, max: number, what: string): void {
  if (value && value.length > max)
    throw badRequest(
      `${what} is too long: ${value.length} characters given, the maximum is ${max}.`,
    );
}

const isString = (kind: TokenKind) => kind === TokenKind.STRING || kind === TokenKind.BLOCK_STRING;
const isOpening = (kind: TokenKind) =>
  kind === TokenKind.BRACE_L || kind === TokenKind.PAREN_L || kind === TokenKind.BRACKET_L;
const isClosing = (kind: TokenKind) =>
  kind === TokenKind.BRACE_R || kind === TokenKind.PAREN_R || kind === TokenKind.BRACKET_R;

// The message has no count, because counting stops at the limit.
export const textTooLarge = (max: number, name: string) =>
  badRequest(`Too many ${name}: the maximum is ${max} per document.`);

/** The error for the first limit that these counts exceed; undefined if there is none. */
export function exceededLimit(counts: Counts): GraphQLError | undefined {
  for (const { count, max, name, code } of LIMITS) {
    if (counts[count] > max) {
      const message = `Too many ${name}: ${counts[count]} requested, the maximum is ${max} per operation.`;
      return badRequest(message, { code });
    }
  }
  return undefined;
}
