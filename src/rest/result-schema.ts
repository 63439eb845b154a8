import {
  assertObjectType,
  getNullableType,
  getOperationAST,
  isListType,
  isNonNullType,
  isObjectType,
  parse,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from "graphql";
import { factsOf } from "../schema/field-metadata.ts";
import { fieldsOf, fragmentsOf } from "../graphql/selected-fields.ts";

/** An object of JSON Schema 2020-12. */
export interface ObjectSchema {
  readonly type: "object";
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, object>>;
}

const SCALARS: Readonly<Record<string, string>> = { String: "string", Boolean: "boolean" };

/**
 * The JSON Schema of what an operation gives for its one root field: the members that it selects, typed
 * and described as the GraphQL schema has them. With `members` it is a result that has only these, and
 * none of them null.
 */
export function resultSchema(
  schema: GraphQLSchema,
  operation: string,
  members?: readonly string[],
): ObjectSchema {
  const document = parse(operation);
  const fragments = fragmentsOf(document);

  function toObject(type: GraphQLObjectType, { selectionSet }: FieldNode, only?: readonly string[]) {
    const properties: Record<string, object> = {};
    for (const node of fieldsOf(fragments, [selectionSet!])) {
      const name = (node.alias ?? node.name).value;
      if (only && !only.includes(name)) continue;
      const field = type.getFields()[node.name.value]!;
      const { pattern, isNullOnlyOnError } = factsOf(field);
      // An operation with an error is answered with that error and nothing else.
      const isPresent = only !== undefined || isNullOnlyOnError;
      properties[name] = {
        ...(isPresent ? toPresent(getNullableType(field.type), node) : toValue(field.type, node)),
        ...(pattern ? { pattern: pattern.source } : {}),
        description: field.description,
      };
    }
    return { type: "object" as const, required: Object.keys(properties), properties };
  }

  function toValue(type: GraphQLOutputType, node: FieldNode): object {
    return isNonNullType(type)
      ? toPresent(type.ofType, node)
      : { anyOf: [toPresent(type, node), { type: "null" }] };
  }

  function toPresent(type: GraphQLOutputType, node: FieldNode): object {
    if (isListType(type)) return { type: "array", items: toValue(type.ofType, node) };
    if (isObjectType(type)) return toObject(type, node);
    const scalar = SCALARS[String(type)];
    if (!scalar) throw new Error(`expected a scalar that JSON Schema has, got ${String(type)}`);
    return { type: scalar };
  }

  const { operation: kind, selectionSet } = getOperationAST(document)!;
  const [root] = fieldsOf(fragments, [selectionSet]);
  const { type } = schema.getRootType(kind)!.getFields()[root!.name.value]!;
  return toObject(assertObjectType(getNullableType(type)), root!, members);
}
