import {
  execute,
  GraphQLError,
  visit,
  BREAK,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { compileQuery, isCompiledQuery } from "graphql-jit";
import type { RequestContext } from "../resolvers/context.ts";
import { fieldsOf, fragmentsOf } from "./selected-fields.ts";

/** To compile one takes some 40 µs and 1.25 kB. */
export const MAX_FIELDS = 500;

/** Runs one operation. A result without `data` has not run: its variables do not fit. */
export type Run = (
  contextValue: RequestContext,
  variables: Readonly<Record<string, unknown>> | null | undefined,
) => ExecutionResult | Promise<ExecutionResult>;

/** Runs an operation as graphql-js does. */
function interpret(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Run {
  const operationName = operation.name?.value;
  return (contextValue, variableValues) =>
    execute({ schema, document, operationName, contextValue, variableValues, hideSuggestions: true });
}

/**
 * Compiles an operation of a valid document with graphql-jit. Where that would answer otherwise than
 * graphql-js (directives, defaults of variables, literals of lists and objects, introspection), or would take
 * long, graphql-js runs it.
 */
export function compile(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Run {
  const interpreted = interpret(schema, document, operation);
  if (!isCompilable(document) || countFields(document, operation, MAX_FIELDS) > MAX_FIELDS)
    return interpreted;
  const compiled = compileQuery(schema, document, operation.name?.value);
  if (!isCompiledQuery(compiled)) return interpreted;

  /** The result as graphql-js gives it: its errors have the nodes of their fields, and come first. */
  function complete({ data, errors }: ExecutionResult): ExecutionResult {
    if (!errors) return { data: data! };
    const withNodes = errors.map(
      ({ message, path, originalError }) =>
        new GraphQLError(message, {
          nodes: nodesAt(document, operation, path ?? []),
          path: path ?? null,
          originalError: originalError ?? null,
        }),
    );
    return { errors: withNodes, data: data! };
  }

  return (contextValue, variables) => {
    const result = compiled.query(undefined, contextValue, variables ?? {});
    if (result instanceof Promise) return result.then(complete);
    // Its words for variables that do not fit are its own.
    return result.data === undefined ? interpreted(contextValue, variables) : complete(result);
  };
}

function isCompilable(document: DocumentNode): boolean {
  let isFit = true;
  const refuse = () => {
    isFit = false;
    return BREAK;
  };
  visit(document, {
    Directive: refuse,
    ListValue: refuse,
    ObjectValue: refuse,
    VariableDefinition: ({ defaultValue }) => (defaultValue ? refuse() : undefined),
    Field: ({ name, alias }) =>
      alias?.value.startsWith("__") || (name.value.startsWith("__") && name.value !== "__typename")
        ? refuse()
        : undefined,
  });
  return isFit;
}

/** The nodes of the field at `path`: one field may be written several times, and in fragments. */
function nodesAt(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  path: readonly (string | number)[],
): FieldNode[] {
  const fragments = fragmentsOf(document);
  let nodes: FieldNode[] = [];
  let sets = [operation.selectionSet];
  for (const name of path) {
    if (typeof name === "number") continue;
    nodes = [...fieldsOf(fragments, sets)].filter(
      ({ name: field, alias }) => (alias ?? field).value === name,
    );
    sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  }
  return nodes;
}

/** How many fields an operation has at all its depths, fragments where they are spread; or more than `max`. */
export function countFields(document: DocumentNode, operation: OperationDefinitionNode, max: number): number {
  const fragments = fragmentsOf(document);
  let count = 0;
  const countIn = (set: SelectionSetNode): void => {
    for (const { selectionSet } of fieldsOf(fragments, [set])) {
      if (++count > max) return;
      if (selectionSet) countIn(selectionSet);
    }
  };
  countIn(operation.selectionSet);
  return count;
}
