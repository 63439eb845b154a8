import {
  defaultFieldResolver,
  getArgumentValues,
  getDirectiveValues,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from "graphql";
import { fieldsOf, fragmentsOf } from "../schema/selected-fields.ts";
import { hasVariable } from "./limits/operation-size.ts";

/** The values of an operation's variables, coerced to their types. */
export type VariableValues = Readonly<Record<string, unknown>>;
export type Arguments = Readonly<Record<string, unknown>>;

/** How the values of a type are completed: one of `leaf`, `items` and `object` is set. */
export interface Shape {
  readonly isNonNull: boolean;
  readonly leaf: GraphQLLeafType | undefined;
  readonly items: Shape | undefined;
  readonly object: GraphQLObjectType | undefined;
}

/** A field of a type. */
interface Definition {
  readonly field: GraphQLField<unknown, unknown>;
  readonly parent: GraphQLObjectType;
  readonly shape: Shape;
  readonly resolve: GraphQLFieldResolver<unknown, unknown>;
  readonly info: GraphQLResolveInfo;
}

/** The fields of an object in an operation's answer, in order. */
export type Plan = readonly PlannedField[];

/** All selections of one field. */
type Selections = readonly [FieldNode, ...FieldNode[]];

/** A field of an operation's answer. */
export class PlannedField {
  readonly responseName: string;
  readonly nodes: Selections;
  readonly definition: Definition;
  /** Undefined if they depend on variables. */
  readonly args: Arguments | undefined;
  /** The plan, or how to make it. */
  #fields: Plan | (() => Plan);

  constructor(
    responseName: string,
    nodes: Selections,
    definition: Definition,
    planFields: () => Plan,
  ) {
    this.responseName = responseName;
    this.nodes = nodes;
    this.definition = definition;
    this.args = constantArguments(definition.field, nodes[0]);
    this.#fields = planFields;
  }

  /** The fields of the object, or of each object of the list. Throws for an invalid directive. */
  get fields(): Plan {
    if (typeof this.#fields === "function") this.#fields = this.#fields();
    return this.#fields;
  }
}

/** Plans operations of valid documents: what of their runs depends on no variable. */
export function createPlanOperation(schema: GraphQLSchema) {
  const definitions = new Map<GraphQLObjectType, Map<string, Definition>>();

  /** Throws for what this schema does not have. */
  function toShape(type: GraphQLOutputType): Shape {
    if (isNonNullType(type)) return { ...toShape(type.ofType), isNonNull: true };
    const shape = { isNonNull: false, leaf: undefined, items: undefined, object: undefined };
    if (isListType(type)) return { ...shape, items: toShape(type.ofType) };
    if (isLeafType(type)) return { ...shape, leaf: type };
    const [object, ...others] = isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
    if (!object || others.length > 0) throw new Error(`${type.name} does not stand for one type`);
    if (object.isTypeOf) throw new Error(`${object.name} has isTypeOf, which would not be called`);
    return { ...shape, object };
  }

  function fieldOf(parent: GraphQLObjectType, name: string): GraphQLField<unknown, unknown> {
    if (name === TypeNameMetaFieldDef.name) return TypeNameMetaFieldDef;
    const isQuery = parent === schema.getQueryType();
    if (isQuery && name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (isQuery && name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
    const field = parent.getFields()[name];
    if (!field) throw new Error(`${parent.name} has no field ${name}`);
    return field;
  }

  function definitionOf(parent: GraphQLObjectType, name: string): Definition {
    let ofParent = definitions.get(parent);
    if (!ofParent) definitions.set(parent, (ofParent = new Map<string, Definition>()));
    const known = ofParent.get(name);
    if (known) return known;
    const field = fieldOf(parent, name);
    const info = { fieldName: name, returnType: field.type, parentType: parent, schema };
    const definition = {
      field,
      parent,
      shape: toShape(field.type),
      resolve: field.resolve ?? defaultFieldResolver,
      info: Object.assign(Object.create(MISSING_INFO) as GraphQLResolveInfo, info),
    };
    ofParent.set(name, definition);
    return definition;
  }

  /**
   * With `variables`, plans each object's fields when they are first needed, as graphql-js does: a
   * directive can be invalid. Without, plans all, and says whether directives may leave some out.
   */
  return (
    document: DocumentNode,
    { operation, selectionSet }: OperationDefinitionNode,
    variables?: VariableValues,
  ) => {
    const fragments = fragmentsOf(document);
    /** By its only selection: a fragment is planned once, however often it is spread. */
    const fieldsByNode = new Map<FieldNode, PlannedField>();
    let size = 0;
    let hasDirectives = false;

    function includes(selection: SelectionNode): boolean {
      if (!selection.directives || selection.directives.length === 0) return true;
      hasDirectives = true;
      if (!variables) return true;
      return (
        getDirectiveValues(GraphQLSkipDirective, selection, variables)?.if !== true &&
        getDirectiveValues(GraphQLIncludeDirective, selection, variables)?.if !== false
      );
    }

    function planSets(parent: GraphQLObjectType, sets: readonly SelectionSetNode[]): Plan {
      const groups = new Map<string, [FieldNode, ...FieldNode[]]>();
      for (const node of fieldsOf(fragments, sets, includes)) {
        const responseName = (node.alias ?? node.name).value;
        const nodes = groups.get(responseName);
        if (nodes) nodes.push(node);
        else groups.set(responseName, [node]);
      }
      return Array.from(groups, ([responseName, nodes]) => planField(parent, responseName, nodes));
    }

    function planField(
      parent: GraphQLObjectType,
      responseName: string,
      nodes: Selections,
    ): PlannedField {
      const node = nodes[0];
      const known = nodes.length === 1 && fieldsByNode.get(node);
      if (known) return known;
      const definition = definitionOf(parent, node.name.value);
      const object = objectOf(definition.shape);
      const field = new PlannedField(responseName, nodes, definition, () =>
        object
          ? planSets(
              object,
              nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
            )
          : [],
      );
      if (nodes.length === 1) fieldsByNode.set(node, field);
      size++;
      return field;
    }

    function planAll(fields: Plan): void {
      for (const field of fields) planAll(field.fields);
    }

    const root = schema.getRootType(operation);
    if (!root) throw new Error(`the schema has no ${operation}`);
    const fields = planSets(root, [selectionSet]);
    if (!variables) planAll(fields);
    return { fields, size, hasDirectives };
  };
}

function objectOf({ object, items }: Shape): GraphQLObjectType | undefined {
  return items ? objectOf(items) : object;
}

const NO_ARGUMENTS: Arguments = Object.freeze({});

/** Undefined if they depend on variables, or are invalid. */
function constantArguments(
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
): Arguments | undefined {
  if (field.args.length === 0) return NO_ARGUMENTS;
  if (node.arguments?.some(({ value }) => hasVariable(value))) return undefined;
  try {
    return Object.freeze(getArgumentValues(field, node));
  } catch {
    return undefined;
  }
}

/** What resolvers do not get, so that it need not be made for each field of each run. */
const MISSING_INFO = Object.defineProperties(
  {},
  Object.fromEntries(
    ["fieldNodes", "fragments", "operation", "path", "rootValue", "variableValues"].map((name) => [
      name,
      {
        get() {
          throw new Error(`run-operation.ts does not pass \`${name}\` to resolvers`);
        },
      },
    ]),
  ),
);
