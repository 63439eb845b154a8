import {
  getOperationAST,
  Kind,
  Lexer,
  OperationTypeNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  Source,
  specifiedRules,
  TokenKind,
  validate,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
} from "graphql";
import type { ErrorCode } from "../../contract/error-codes.ts";
import {
  MAX_COLLECTS,
  MAX_LISTED_COLLECTS,
  MAX_MINTS_PER_OPERATION,
  MAX_TRANSFERS,
  MAX_WALLETS,
} from "../../schema/field-costs.ts";
import { badRequest, shorten } from "../errors.ts";
import { measureOperation, type Counts, type OperationVariables } from "./operation-size.ts";
import { sameResponseNameRule } from "./same-response-name.ts";

/**
 * A query of 100 wallets, each with a variable and all fields but `profile`, `coins` and `history`,
 * has 3,305.
 */
const MAX_TOKENS = 4_000;
/** GraphiQL's introspection is 15 deep, every other operation at most 6. The parser recurses. */
const MAX_DEPTH = 20;
const MAX_DIRECTIVES = 200;
const MAX_OPERATIONS = 10;
/** In one operation. */
const MAX_FIELDS = 2_000;
const MAX_VALIDATION_ERRORS = 5;

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
 * Checks the limits of a document's text, then parses it. Throws GraphQLError BAD_REQUEST, or a
 * syntax error.
 */
export function parseWithinLimits(text: string): DocumentNode {
  assertTextWithinLimits(text);
  return parse(text);
}

const RULES = specifiedRules
  .filter((rule) => rule !== OverlappingFieldsCanBeMergedRule)
  .concat(sameResponseNameRule(MAX_FIELDS));

/**
 * Checks the limits of a document's operations, then validates the document. Validation visits all
 * operations, so all must be within the limits, even those that will not run. Throws GraphQLError
 * BAD_REQUEST or INVALID_MINT.
 */
export function validateWithinLimits(
  schema: GraphQLSchema,
  document: DocumentNode,
  {
    operationName,
    variables,
  }: { operationName?: string | undefined; variables?: OperationVariables | undefined },
): readonly GraphQLError[] {
  const operations = document.definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION);
  if (operations.length > MAX_OPERATIONS) throw textTooLarge(MAX_OPERATIONS, "operations");
  const selected = getOperationAST(document, operationName);
  for (const operation of operations) {
    const isSelected = operation === selected;
    const { counts } = measureOperation(
      schema,
      document,
      operation,
      isSelected ? variables : undefined,
    );
    const exceeded = exceededLimit(counts);
    if (exceeded) throw exceeded;
    // Each event would read the history again.
    if (
      isSelected &&
      operation.operation === OperationTypeNode.SUBSCRIPTION &&
      counts.historyRequests > 0
    )
      throw badRequest("A subscription has no `history`. Query it after an event.");
  }
  const options = { maxErrors: MAX_VALIDATION_ERRORS, hideSuggestions: true };
  return validate(schema, document, RULES, options).map(shorten);
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

// The message has no count, because counting stops at the limit.
const textTooLarge = (max: number, name: string) =>
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
