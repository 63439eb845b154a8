import { getOperationAST, type DocumentNode, type GraphQLSchema } from "graphql";
import { LRUCache } from "lru-cache";
import { compile, interpret, type Run } from "./compiler.ts";
import { operationCost } from "./operation-cost.ts";

/** An operation that has been parsed and validated before. */
export interface KnownOperation {
  /** What it takes out of its caller's budget. */
  readonly cost: number;
  readonly run: Run;
}

/** Strangers choose what is kept, so the length of all texts is bounded; the trees take some 30 times as much. */
const MAX_TEXT_LENGTH = 20_000;
const MAX_TEXTS_LENGTH = 1_000_000;
const MAX_OPERATIONS = 1_024;

/** The operations that were run a while ago, by their text and name; compiled when they come again. */
export function createKnownOperations(schema: GraphQLSchema) {
  const known = new LRUCache<string, Map<string | undefined, KnownOperation>>({
    max: MAX_OPERATIONS,
    maxSize: MAX_TEXTS_LENGTH,
    maxEntrySize: MAX_TEXT_LENGTH,
    sizeCalculation: (operations, text) => operations.size * text.length || 1,
  });

  return {
    get: (text: string, operationName: string | undefined): KnownOperation | undefined =>
      known.get(text)?.get(operationName),

    /** Keeps the operation of a valid document, if it has it. */
    add(text: string, operationName: string | undefined, document: DocumentNode): KnownOperation | undefined {
      const node = getOperationAST(document, operationName);
      if (!node) return undefined;
      let compiled: Run | undefined;
      const operation: KnownOperation = {
        cost: operationCost(document, node),
        run(...request) {
          compiled ??= compile(schema, document, node) ?? interpret(schema, document, node);
          return compiled(...request);
        },
      };
      known.set(text, new Map(known.get(text)).set(operationName, operation));
      return operation;
    },
  };
}
