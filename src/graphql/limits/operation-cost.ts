import { Kind, type DocumentNode, type GraphQLSchema, type OperationDefinitionNode } from "graphql";
import { metadataOf } from "../../schema/field-metadata.ts";
import type { Counts } from "./operation-size.ts";
import { fieldsOf, fragmentsOf } from "../selected-fields.ts";
import { argumentOf, createVariableLength, literalLength, type Variables } from "./list-length.ts";

/**
 * Returns a function that computes how many requests an operation takes from the caller's rate limit: the sum
 * over its root fields, at least one, plus one for each page of a history. `counts` are those with the same
 * variables. The result is known before anything runs: root fields with the same response name count once,
 * and a field under `@skip` counts too.
 */
export function operationCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (variables: Variables, counts: Pick<Counts, "histories">) => number {
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  const variableLength = createVariableLength(operation);
  const costsByName = new Map<string, (variables: Variables) => number>();
  for (const node of fieldsOf(fragmentsOf(document), [operation.selectionSet])) {
    const field = fields[node.name.value];
    if (!field) continue;
    const { requests = 0, perItemOf } = metadataOf(field).cost ?? {};
    const list = perItemOf === undefined ? undefined : argumentOf(node, perItemOf);
    const items = perItemOf === undefined ? 1 : literalLength(list);
    costsByName.set((node.alias ?? node.name).value, (variables) =>
      list?.kind === Kind.VARIABLE ? requests * variableLength(list.name.value, variables) : requests * items,
    );
  }
  return (variables, { histories }) => {
    const requests = costsByName.values().reduce((sum, cost) => sum + cost(variables), 0);
    return Math.max(1, requests) + histories;
  };
}
