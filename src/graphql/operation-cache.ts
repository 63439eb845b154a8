import {
  getOperationAST,
  OperationTypeNode,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from "graphql";
import { LRUCache } from "lru-cache";
import { MAX_COMPILED_FIELDS, type Compile, type Run } from "./compiler.ts";
import { chainCallsOf } from "../schema/field-costs.ts";
import { exceededLimit } from "./limits/operation-limits.ts";
import { measureOperation, type OperationVariables } from "./limits/operation-size.ts";

/** An operation that has been parsed and validated. */
export interface CachedOperation {
  readonly isMutation: boolean;
  readonly weigh: (variables: OperationVariables) => Weight;
  /** The estimated memory. */
  readonly bytes: number;
  readonly run: Run;
}

/** What an operation with its variables costs. */
export interface Weight {
  /** The requests taken from the caller's rate limit: see {@link measureOperation}. */
  readonly cost: number;
  /** The calls taken from the caller's share; 0 if one call is enough. */
  readonly chainCalls: number;
  readonly isWithinLimits: boolean;
}

/**
 * Estimated memory of documents and of compiled code (docs/measurements.md). Any caller can fill
 * the cache.
 */
const BYTES_PER_CHARACTER = 30;
const BYTES_PER_FIELD = 1_250;
const MAX_BYTES = 50_000_000;
const MAX_TEXT_LENGTH = 20_000;
const MAX_OPERATIONS = 1_024;

/** Caches operations by text and name. An operation is compiled when it runs a second time. */
export function createOperationCache(schema: GraphQLSchema, compile: Compile) {
  const cache = new LRUCache<string, CachedOperation>({
    max: MAX_OPERATIONS,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ bytes }) => bytes,
  });
  const keyOf = (text: string, operationName = "") => `${operationName}\n${text}`;

  return {
    get: (text: string, operationName: string | undefined): CachedOperation | undefined =>
      cache.get(keyOf(text, operationName)),

    /**
     * Returns the named operation of a valid document; undefined if it has no such operation. Does
     * not cache it.
     */
    find(
      text: string,
      operationName: string | undefined,
      document: DocumentNode,
    ): CachedOperation | undefined {
      const cached = cache.get(keyOf(text, operationName));
      if (cached) return cached;
      const node = getOperationAST(document, operationName);
      if (!node) return undefined;
      const fields = measureOperation(schema, document, node).counts.distinctFields;
      let compiled: Run | undefined;
      return {
        isMutation: node.operation === OperationTypeNode.MUTATION,
        weigh: createWeigh(schema, document, node),
        bytes:
          BYTES_PER_CHARACTER * text.length +
          BYTES_PER_FIELD * Math.min(fields, MAX_COMPILED_FIELDS),
        run(...request) {
          compiled ??= compile(document, node, fields);
          return compiled(...request);
        },
      };
    },

    /** Caches an operation that has been admitted, unless its text is long. */
    add(text: string, operationName: string | undefined, operation: CachedOperation): void {
      if (text.length <= MAX_TEXT_LENGTH) cache.set(keyOf(text, operationName), operation);
    },
  };
}

/** Measures an operation only once if its size depends on no variable. */
function createWeigh(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
) {
  let always: Weight | undefined;
  return (variables: OperationVariables): Weight => {
    if (always) return always;
    const size = measureOperation(schema, document, operation, variables);
    const weight = {
      cost: size.requests,
      chainCalls: chainCallsOf(size.counts.accounts),
      isWithinLimits: !exceededLimit(size.counts),
    };
    if (!size.dependsOnVariables) always = weight;
    return weight;
  };
}
