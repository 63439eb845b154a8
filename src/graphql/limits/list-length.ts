import { Kind, type FieldNode, type OperationDefinitionNode, type ValueNode } from "graphql";

/** The variables of a request. */
export type Variables = Readonly<Record<string, unknown>> | null | undefined;

/** The value of a field's argument; undefined if it is absent. */
export function argumentOf(node: FieldNode, name: string): ValueNode | undefined {
  return node.arguments?.find((argument) => argument.name.value === name)?.value;
}

/** Returns a function that returns the length of a list in one of the operation's variables. */
export function createVariableLength(operation: OperationDefinitionNode) {
  const defaults = new Map(
    (operation.variableDefinitions ?? []).map(({ variable, defaultValue }) => [
      variable.name.value,
      literalLength(defaultValue),
    ]),
  );
  return (name: string, variables: Variables): number =>
    variables && Object.hasOwn(variables, name) ? lengthOf(variables[name]) : (defaults.get(name) ?? 0);
}

/** The length of a list in the document. */
export function literalLength(value: ValueNode | undefined): number {
  if (value?.kind === Kind.LIST) return value.values.length;
  return value === undefined || value.kind === Kind.NULL ? 0 : 1;
}

/** GraphQL coerces a value that is not a list to a list of one. */
function lengthOf(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return value === null ? 0 : 1;
}
