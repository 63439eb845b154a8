import type { GraphQLField } from "graphql";
import { SOL_PATTERN } from "../chain/lamports.ts";

/** What is known of a field's values, and GraphQL's types cannot say. */
export interface FieldFacts {
  /** The form of a string. */
  readonly pattern?: RegExp;
  /** Null means that the field has failed, and an error says why. */
  readonly isNullOnlyOnError?: true;
}

/** Options of a field that keep the facts where {@link factsOf} finds them. */
export function facts(extensions: FieldFacts) {
  return { extensions: { ...extensions } };
}

/** The facts of a field of the schema. */
export function factsOf({ extensions }: GraphQLField<unknown, unknown>): FieldFacts {
  return extensions;
}

/** Options of a field that shows an amount; they complete its description. */
export function solField(description: string) {
  return {
    ...facts({ pattern: SOL_PATTERN }),
    description: `${description} In SOL, a decimal string with 4 digits after the point, cut and never rounded up.`,
  };
}
