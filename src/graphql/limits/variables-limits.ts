import type { GraphQLError } from "graphql";
import { badRequest } from "../errors.ts";

/** At all depths. A hundred entries to collect, with a coin each, have 401. */
const MAX_VALUES = 1_000;
/** In one object. `CollectInput` has two. */
const MAX_MEMBERS = 5;

/**
 * The error for the limit that a request's variables exceed; undefined if they are within all limits. Without these,
 * invalid variables would take seconds: GraphQL prints a whole object for each of its unknown members.
 */
export function exceededByVariables(variables: unknown): GraphQLError | undefined {
  const values = [variables];
  for (const value of values) {
    if (typeof value !== "object" || value === null) continue;
    const members: unknown[] = Object.values(value);
    if (members.length > MAX_MEMBERS && value !== variables && !Array.isArray(value))
      return badRequest(
        `Too many members of an object in \`variables\`: ${members.length} given, the maximum is ${MAX_MEMBERS}.`,
      );
    if (values.length + members.length > 1 + MAX_VALUES)
      return badRequest(`Too many values in \`variables\`: the maximum is ${MAX_VALUES}.`);
    values.push(...members);
  }
  return undefined;
}
