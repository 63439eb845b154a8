import {
  execute,
  GraphQLError,
  Kind,
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

/** Runs one operation. A result without `data` has not run: its variables do not fit. */
export type Run = (
  contextValue: RequestContext,
  variables: Readonly<Record<string, unknown>> | null | undefined,
) => ExecutionResult | Promise<ExecutionResult>;

/** Runs an operation as graphql-js does. */
export function interpret(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Run {
  const operationName = operation.name?.value;
  return (contextValue, variableValues) =>
    execute({ schema, document, operationName, contextValue, variableValues });
}

/**
 * Compiles an operation of a valid document with graphql-jit, or does not where that would answer otherwise
 * than graphql-js: for directives, defaults of variables, literals of lists and objects, and introspection.
 */
export function compile(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Run | undefined {
  if (!isCompilable(document)) return undefined;
  const compiled = compileQuery(schema, document, operation.name?.value);
  if (!isCompiledQuery(compiled)) return undefined;
  const interpreted = interpret(schema, document, operation);

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
    Field: ({ name: { value } }) => (value.startsWith("__") && value !== "__typename" ? refuse() : undefined),
  });
  return isFit;
}

/** The nodes of the field at `path`: one field may be written several times, and in fragments. */
function nodesAt(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  path: readonly (string | number)[],
): FieldNode[] {
  const fieldsOf = (set: SelectionSetNode, name: string): FieldNode[] =>
    set.selections.flatMap((selection) => {
      if (selection.kind === Kind.INLINE_FRAGMENT) return fieldsOf(selection.selectionSet, name);
      if (selection.kind === Kind.FIELD)
        return (selection.alias ?? selection.name).value === name ? [selection] : [];
      const fragment = document.definitions.find(
        (definition) =>
          definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value,
      );
      return fragment?.kind === Kind.FRAGMENT_DEFINITION ? fieldsOf(fragment.selectionSet, name) : [];
    });
  let sets = [operation.selectionSet];
  let nodes: FieldNode[] = [];
  for (const name of path) {
    if (typeof name === "number") continue;
    nodes = sets.flatMap((set) => fieldsOf(set, name));
    sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  }
  return nodes;
}
