import { getOperationAST, OperationTypeNode, type DocumentNode, type GraphQLSchema } from "graphql";
import { LRUCache } from "lru-cache";
import { compile, countFields, MAX_COMPILED_FIELDS, type Run } from "./compiler.ts";
import { operationCost } from "./limits/operation-cost.ts";
import { measureOperation, type OperationSize } from "./limits/operation-size.ts";

/** An operation that has been parsed and validated. */
export interface CachedOperation {
  /** For traces. */
  readonly type: string;
  readonly name: string | undefined;
  /** Requests taken from the caller's rate limit, with these variables, and the counts with them. */
  readonly cost: ReturnType<typeof operationCost>;
  readonly isMutation: boolean;
  /** Together with a request's variables, decides whether the operation is within the limits. */
  readonly size: OperationSize;
  /** The estimated memory. */
  readonly bytes: number;
  readonly run: Run;
}

/** Callers decide what is cached, so the memory for documents and compiled code is bounded. */
const BYTES_PER_CHARACTER = 30;
const BYTES_PER_FIELD = 1_250;
const MAX_BYTES = 50_000_000;
const MAX_TEXT_LENGTH = 20_000;
const MAX_OPERATIONS = 1_024;

/** Caches operations by text and name. An operation is compiled when it runs a second time. */
export function createOperationCache(schema: GraphQLSchema) {
  const cache = new LRUCache<string, Map<string | undefined, CachedOperation>>({
    max: MAX_OPERATIONS,
    maxSize: MAX_BYTES,
    sizeCalculation: (operations) => operations.values().reduce((sum, { bytes }) => sum + bytes, 1),
  });

  return {
    get: (text: string, operationName: string | undefined): CachedOperation | undefined =>
      cache.get(text)?.get(operationName),

    /** Returns the named operation of a valid document, if it exists. Caches it unless its text is long. */
    add(
      text: string,
      operationName: string | undefined,
      document: DocumentNode,
    ): CachedOperation | undefined {
      const cached = cache.get(text)?.get(operationName);
      if (cached) return cached;
      const node = getOperationAST(document, operationName);
      if (!node) return undefined;
      let compiled: Run | undefined;
      const operation: CachedOperation = {
        type: node.operation,
        name: node.name?.value,
        cost: operationCost(schema, document, node),
        isMutation: node.operation === OperationTypeNode.MUTATION,
        size: measureOperation(schema, document, node),
        get bytes() {
          return (
            BYTES_PER_CHARACTER * text.length +
            BYTES_PER_FIELD * countFields(document, node, MAX_COMPILED_FIELDS)
          );
        },
        run(...request) {
          compiled ??= compile(schema, document, node);
          return compiled(...request);
        },
      };
      if (text.length <= MAX_TEXT_LENGTH)
        cache.set(text, new Map(cache.get(text)).set(operationName, operation));
      return operation;
    },
  };
}
