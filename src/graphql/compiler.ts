import {
  execute,
  getNullableType,
  GraphQLError,
  isListType,
  isObjectType,
  lexicographicSortSchema,
  visit,
  BREAK,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from "graphql";
import { compileQuery, isCompiledQuery, type CompiledQuery } from "graphql-jit";
import type { Context } from "../resolvers/use-cases.ts";

/** Larger operations are not compiled: docs/measurements.md says what a field costs. */
export const MAX_COMPILED_FIELDS = 500;

/**
 * Runs one operation. A result without `data` means that the variables are invalid and nothing ran.
 */
export type Run = (
  contextValue: Context,
  variables: Readonly<Record<string, unknown>> | null | undefined,
) => ExecutionResult | Promise<ExecutionResult>;

/** Runs an operation with graphql-js. */
function interpret(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Run {
  const operationName = operation.name?.value;
  return (contextValue, variableValues) =>
    execute({
      schema,
      document,
      operationName,
      contextValue,
      variableValues,
      hideSuggestions: true,
    });
}

export type Compile = ReturnType<typeof createCompile>;

/**
 * Uses graphql-jit to compile operations of valid documents. graphql-js runs an operation if
 * graphql-jit's result would differ (see `canCompile`) or if compiling would take too long.
 * `fields`: the operation's fields, fragments included.
 */
export function createCompile(schema: GraphQLSchema) {
  const compilable = withItemErrors(schema);
  return (document: DocumentNode, operation: OperationDefinitionNode, fields: number): Run => {
    const compiled =
      canCompile(document) &&
      fields <= MAX_COMPILED_FIELDS &&
      compileQuery(compilable, document, operation.name?.value);
    return compiled && isCompiledQuery(compiled)
      ? toRun(compiled)
      : interpret(schema, document, operation);
  };
}

/**
 * Resolves rejected list items to errors, because graphql-jit lengthens the list if a later item
 * resolves first.
 */
function withItemErrors(schema: GraphQLSchema): GraphQLSchema {
  const toItem = (item: unknown) =>
    item instanceof Promise ? item.catch((error: unknown) => error) : item;
  const copy = lexicographicSortSchema(schema);
  for (const type of Object.values(copy.getTypeMap())) {
    for (const field of isObjectType(type) ? Object.values(type.getFields()) : []) {
      const { resolve } = field;
      if (!resolve || !isListType(getNullableType(field.type))) continue;
      field.resolve = (...request) => {
        const items: unknown = resolve(...request);
        return Array.isArray(items) ? items.map(toItem) : items;
      };
    }
  }
  return copy;
}

/**
 * Converts results to those of graphql-js: `errors` comes first, and its errors are GraphQLErrors.
 */
function toRun({ query }: CompiledQuery): Run {
  function complete({ data, errors }: ExecutionResult): ExecutionResult {
    if (!errors) return { data: data! };
    const converted = errors.map(({ message, path, originalError, locations }) =>
      Object.assign(
        new GraphQLError(message, { path: path ?? null, originalError: originalError ?? null }),
        {
          locations,
        },
      ),
    );
    return { errors: converted, data: data! };
  }

  return (contextValue, variables) => {
    const result = query(undefined, contextValue, variables ?? {});
    if (result instanceof Promise) return result.then(complete);
    return result.data === undefined ? result : complete(result);
  };
}

function canCompile(document: DocumentNode): boolean {
  let isCompilable = true;
  const refuse = () => {
    isCompilable = false;
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
  return isCompilable;
}
