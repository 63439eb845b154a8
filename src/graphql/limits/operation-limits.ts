import { Lexer, Source, TokenKind, type GraphQLError } from "graphql";
import type { ErrorCode } from "../../contract/error-codes.ts";
import {
  MAX_COLLECTS,
  MAX_LISTED_COLLECTS,
  MAX_MINTS_PER_OPERATION,
  MAX_TRANSFERS,
  MAX_WALLETS,
} from "../../schema/field-costs.ts";
import { badRequest } from "../errors.ts";
import type { Counts } from "./operation-size.ts";

/**
 * A query of 100 wallets, each with a variable and all fields but `profile`, `coins` and `history`,
 * has 3,305.
 */
const MAX_TOKENS = 4_000;
/** GraphiQL's introspection is 15 deep, every other operation at most 6. The parser recurses. */
const MAX_DEPTH = 20;
const MAX_DIRECTIVES = 200;
/** In one operation. */
export const MAX_FIELDS = 2_000;

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

/** Counts the tokens of a document's text. Throws GraphQLError BAD_REQUEST above a limit. */
export function countTokens(text: string): number {
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
  return tokens;
}

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
