import {
  GraphQLError,
  print,
  visit,
  type ASTVisitor,
  type FieldNode,
  type OperationDefinitionNode,
  type ValidationContext,
  type ValueNode,
} from "graphql";
import { fieldsOf, fragmentsOf } from "../../schema/selected-fields.ts";

/**
 * Requires that fields with one response name are the same field with the same arguments. Replaces
 * graphql-js's OverlappingFieldsCanBeMergedRule, which compares all pairs: 54,000 for 330 fields.
 * Comparing each with the first is enough, also in fragments on an interface, because each
 * interface of the schema has one type, whose fields have the interface's types: no two parents of
 * merged fields exclude each other, and the same field has the same type. The schema has no unions.
 * Stops after `maxFields` fields: an operation with more exceeds a limit or has a cycle of
 * fragments. Other checks refuse both.
 */
export function sameResponseNameRule(maxFields: number) {
  return (context: ValidationContext): ASTVisitor => {
    const fragments = fragmentsOf(context.getDocument());

    /** The arguments of each field that has been compared; equal ones have the same number. */
    const argumentsByField = new Map<FieldNode, number>();
    const numbersByText = new Map<string, number>();

    function argumentsOf(field: FieldNode): number {
      const knownNumber = argumentsByField.get(field);
      if (knownNumber !== undefined) return knownNumber;
      const text = printArguments(field);
      const number = numbersByText.get(text) ?? numbersByText.size;
      numbersByText.set(text, number);
      argumentsByField.set(field, number);
      return number;
    }

    function checkOperation({ selectionSet }: OperationDefinitionNode): void {
      const mergedSets = [[selectionSet]];
      let fields = 0;
      for (const sets of mergedSets) {
        const byResponseName = Map.groupBy(
          fieldsOf(fragments, sets),
          ({ name, alias }) => (alias ?? name).value,
        );
        for (const [responseName, same] of byResponseName) {
          fields += same.length;
          if (fields > maxFields) return;
          reportDifferences(responseName, same);
          const nestedSets = same.flatMap((field) => field.selectionSet ?? []);
          if (nestedSets.length > 0) mergedSets.push(nestedSets);
        }
      }
    }

    function reportDifferences(
      responseName: string,
      [first, ...others]: readonly FieldNode[],
    ): void {
      if (!first || others.length === 0) return;
      const args = argumentsOf(first);
      for (const other of others) {
        const reason =
          other.name.value !== first.name.value
            ? `one selects \`${first.name.value}\`, another \`${other.name.value}\``
            : argumentsOf(other) !== args
              ? "their arguments differ"
              : undefined;
        if (!reason) continue;
        const message = `Fields with the response name "${responseName}" conflict: ${reason}. Use aliases.`;
        context.reportError(new GraphQLError(message, { nodes: [first, other] }));
      }
    }

    return { OperationDefinition: checkOperation };
  };
}

/**
 * The arguments as text; equal if only the order of arguments, or of fields of input objects,
 * differs.
 */
function printArguments(field: FieldNode): string {
  const args =
    field.arguments?.map(({ name, value }) => `${name.value}:${print(sortFields(value))}`) ?? [];
  return args.sort().join();
}

function sortFields(value: ValueNode): ValueNode {
  return visit(value, {
    ObjectValue: {
      leave: (object) => ({
        ...object,
        fields: object.fields.toSorted((a, b) => (a.name.value < b.name.value ? -1 : 1)),
      }),
    },
  });
}
