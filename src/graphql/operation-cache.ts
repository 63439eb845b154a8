import { getOperationAST, type DocumentNode, type GraphQLSchema } from "graphql";
import { LRUCache } from "lru-cache";
import { compile, countFields, MAX_FIELDS, type Run } from "./compiler.ts";
import { operationCost } from "./limits/operation-cost.ts";
import { measureOperation, type OperationSize } from "./limits/operation-size.ts";

/** An operation that has been parsed and validated before. */
export interface KnownOperation {
  /** What it takes out of its caller's budget. */
  readonly cost: number;
  /** Whether it is within the limits is known with its variables only. */
  readonly size: OperationSize;
  /** What keeping it takes, about. */
  readonly bytes: number;
  readonly run: Run;
}

/** Strangers choose what is kept, so the memory for it is bounded: for its tree, and for its code. */
const BYTES_A_CHARACTER = 30;
const BYTES_A_FIELD = 1_250;
const MAX_BYTES = 50_000_000;
const MAX_TEXT_LENGTH = 20_000;
const MAX_OPERATIONS = 1_024;

/** The operations that were run a while ago, by their text and name; compiled when they come again. */
export function createKnownOperations(schema: GraphQLSchema) {
  const known = new LRUCache<string, Map<string | undefined, KnownOperation>>({
    max: MAX_OPERATIONS,
    maxSize: MAX_BYTES,
    sizeCalculation: (operations) => operations.values().reduce((sum, { bytes }) => sum + bytes, 1),
  });

  return {
    get: (text: string, operationName: string | undefined): KnownOperation | undefined =>
      known.get(text)?.get(operationName),

    /** The operation of a valid document, if it has it; kept unless its text is long. */
    add(text: string, operationName: string | undefined, document: DocumentNode): KnownOperation | undefined {
      const earlier = known.get(text)?.get(operationName);
      if (earlier) return earlier;
      const node = getOperationAST(document, operationName);
      if (!node) return undefined;
      let compiled: Run | undefined;
      const operation: KnownOperation = {
        cost: operationCost(document, node),
        size: measureOperation(document, node),
        get bytes() {
          return BYTES_A_CHARACTER * text.length + BYTES_A_FIELD * countFields(document, node, MAX_FIELDS);
        },
        run(...request) {
          compiled ??= compile(schema, document, node);
          return compiled(...request);
        },
      };
      if (text.length <= MAX_TEXT_LENGTH)
        known.set(text, new Map(known.get(text)).set(operationName, operation));
      return operation;
    },
  };
}
