import {
  getOperationAST,
  Kind,
  OperationTypeNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  validate,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from "graphql";
import { LRUCache } from "lru-cache";
import { badRequest } from "./errors.ts";
import { countTokens, exceededLimit, MAX_FIELDS, textTooLarge } from "./limits/document-limits.ts";
import {
  measureOperation,
  type OperationSize,
  type OperationVariables,
} from "./limits/operation-size.ts";
import { sameResponseNameRule } from "./limits/same-response-name.ts";
import { createPrepareRun, type RunnableOperation } from "./run-operation.ts";
import { keepOnlyStarts } from "./source-locations.ts";

/** An operation of a document. Only one of a valid document may run. */
export interface Operation extends RunnableOperation {
  readonly node: OperationDefinitionNode;
  /** Measures the operation, once if its size depends on no variable. */
  readonly measure: (variables: OperationVariables) => OperationSize;
}

/** A document that has been parsed; valid if it is cached. */
export interface Document {
  readonly text: string;
  readonly node: DocumentNode;
  readonly operations: ReadonlyMap<OperationDefinitionNode, Operation>;
  /** The memory that it takes, with its text and without plans of its operations. */
  readonly bytes: number;
}

/**
 * The most memory that a token takes, and what a document takes besides: measured by
 * test/graphql/document-memory.slow.test.ts.
 */
const BYTES_PER_TOKEN = 400;
const BYTES_PER_DOCUMENT = 2_000;
const BYTES_PER_PLANNED_FIELD = 200;
/** Of the cache, which any caller can fill. */
const MAX_BYTES = 50_000_000;

const MAX_OPERATIONS = 10;
/**
 * Of all operations together. A fragment is walked wherever it is spread, when the document is
 * validated and when an operation runs.
 */
const MAX_SPREADS = 30_000;
const MAX_VALIDATION_ERRORS = 5;

const RULES = specifiedRules
  .filter((rule) => rule !== OverlappingFieldsCanBeMergedRule)
  .concat(sameResponseNameRule(MAX_FIELDS));

/** Parses and validates documents within the limits, and caches those that have been admitted. */
export function createDocuments(schema: GraphQLSchema) {
  const cache = new LRUCache<string, Document>({ maxSize: MAX_BYTES });
  const prepareRun = createPrepareRun(schema);
  /** Documents that have been validated, also those that are no longer cached. */
  const valid = new WeakSet<Document>();

  function createOperation(document: DocumentNode, node: OperationDefinitionNode): Operation {
    let fixedSize: OperationSize | undefined;
    return {
      ...prepareRun(document, node),
      node,
      measure(variables) {
        if (fixedSize) return fixedSize;
        const size = measureOperation(schema, document, node, variables);
        if (!size.dependsOnVariables) fixedSize = size;
        return size;
      },
    };
  }

  return {
    cached: (text: string): Document | undefined => cache.get(text),

    /** Throws GraphQLError BAD_REQUEST, or a syntax error. */
    parse(text: string): Document {
      const tokens = countTokens(text);
      const node = keepOnlyStarts(parse(text));
      const operations = node.definitions
        .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
        .map((each) => [each, createOperation(node, each)] as const);
      if (operations.length > MAX_OPERATIONS) throw textTooLarge(MAX_OPERATIONS, "operations");
      const bytes = BYTES_PER_DOCUMENT + 2 * text.length + BYTES_PER_TOKEN * tokens;
      return { text, node, operations: new Map(operations), bytes };
    },

    /**
     * Returns what is wrong with a document. Throws GraphQLError BAD_REQUEST or INVALID_MINT if an
     * operation exceeds a limit. All operations must be within the limits, because validation
     * visits them all; only the operation of this name has these variables.
     */
    validate(
      document: Document,
      operationName: string | null | undefined,
      variables: OperationVariables,
    ): readonly GraphQLError[] {
      const { node, operations } = document;
      const selectedOperation = findOperation(document, operationName);
      let spreads = 0;
      for (const operation of operations.values()) {
        const isSelected = operation === selectedOperation;
        const { counts } = operation.measure(isSelected ? variables : undefined);
        const refusal = exceededLimit(counts);
        if (refusal) throw refusal;
        spreads += counts.spreads;
        if (spreads > MAX_SPREADS) throw textTooLarge(MAX_SPREADS, "fragments");
        // Each event would read the history again.
        const isSubscription = operation.node.operation === OperationTypeNode.SUBSCRIPTION;
        if (isSelected && isSubscription && counts.historyRequests > 0)
          throw badRequest(
            "A subscription has no `history` and no `coinsSeen`. Query them after an event.",
          );
      }
      if (valid.has(document)) return [];
      const options = { maxErrors: MAX_VALIDATION_ERRORS, hideSuggestions: true };
      return validate(schema, node, RULES, options);
    },

    /** Caches a valid document whose operation has been admitted. */
    add(document: Document): void {
      valid.add(document);
      cache.set(document.text, document, { size: document.bytes + bytesOfPlans(document) });
    },
  };
}

/** The memory that the plans of a valid document's operations take. Plans them all. */
export function bytesOfPlans({ operations }: Document): number {
  let fields = 0;
  for (const { plan } of operations.values()) fields += plan();
  return BYTES_PER_PLANNED_FIELD * fields;
}

/** The operation of this name, or the only one without a name; undefined if there is none. */
export function findOperation(
  { node, operations }: Document,
  operationName: string | null | undefined,
): Operation | undefined {
  const operation = getOperationAST(node, operationName);
  return operation ? operations.get(operation) : undefined;
}
