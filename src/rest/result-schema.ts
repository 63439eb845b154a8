import {
  assertObjectType,
  getNullableType,
  getOperationAST,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  parse,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from "graphql";
import { fieldsOf, fragmentsOf } from "../schema/selected-fields.ts";
import { metadataOf } from "../schema/field-metadata.ts";

/** The JSON Schema 2020-12 of an object. */
export interface ObjectSchema {
  readonly type: "object";
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, object>>;
}

/** A reference to a schema of the OpenAPI document. */
export const schemaRef = (name: string) => ({ $ref: `#/components/schemas/${name}` });

const SCALARS: Readonly<Record<string, string>> = { String: "string", Boolean: "boolean", Int: "integer" };

/**
 * The JSON Schema of the result of an operation's only root field: the selected members, with the types and
 * descriptions of the GraphQL schema. With `members`, only these, all non-null. Adds the schemas of nested objects
 * to `schemas`, by the names of their types, and refers to them.
 */
export function resultSchema(
  schema: GraphQLSchema,
  operation: string,
  { members, schemas }: { members?: readonly string[] | undefined; schemas: Record<string, object> },
): ObjectSchema {
  const document = parse(operation);
  const fragments = fragmentsOf(document);

  function toObject(type: GraphQLObjectType, { selectionSet }: FieldNode, only?: readonly string[]) {
    const properties: Record<string, object> = {};
    const required: string[] = [];
    for (const node of fieldsOf(fragments, [selectionSet!])) {
      const name = (node.alias ?? node.name).value;
      if (only && !only.includes(name)) continue;
      const field = type.getFields()[node.name.value]!;
      const { pattern, isNullOnlyOnError, isOmittedIfNull, presentDescription } = metadataOf(field);
      // A REST response to a failed operation contains only the error.
      const isNonNull = only !== undefined || isNullOnlyOnError || isOmittedIfNull;
      const value = isNonNull
        ? toNonNull(getNullableType(field.type), node, pattern)
        : toValue(field.type, node, pattern);
      const description = (isNonNull && presentDescription) || field.description;
      properties[name] = { ...value, description };
      if (!isOmittedIfNull) required.push(name);
    }
    return { type: "object" as const, required, properties };
  }

  function toValue(type: GraphQLOutputType, node: FieldNode, pattern?: RegExp): object {
    return isNonNullType(type)
      ? toNonNull(type.ofType, node, pattern)
      : { anyOf: [toNonNull(type, node, pattern), { type: "null" }] };
  }

  function toNonNull(type: GraphQLOutputType, node: FieldNode, pattern?: RegExp): object {
    if (isListType(type)) return { type: "array", items: toValue(type.ofType, node) };
    if (isObjectType(type)) {
      schemas[type.name] = toObject(type, node);
      return schemaRef(type.name);
    }
    if (isEnumType(type)) return { type: "string", enum: type.getValues().map(({ name }) => name) };
    const scalar = SCALARS[String(type)];
    if (!scalar) throw new Error(`the scalar ${String(type)} has no JSON Schema type`);
    return { type: scalar, ...(pattern ? { pattern: pattern.source } : {}) };
  }

  const { operation: kind, selectionSet } = getOperationAST(document)!;
  const [root] = fieldsOf(fragments, [selectionSet]);
  const { type } = schema.getRootType(kind)!.getFields()[root!.name.value]!;
  return toObject(assertObjectType(getNullableType(type)), root!, members);
}
