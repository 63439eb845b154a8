import type { GraphQLField } from "graphql";
import { SOL_PATTERN } from "../chain/lamports.ts";

/** What one use of a field counts as, before the operation runs. */
interface FieldCost {
  readonly wallets?: number;
  readonly collects?: number;
  /** Requests of the caller's rate limit. An operation costs the sum over its fields, at least one. */
  readonly requests?: number;
  /** The list argument that multiplies the cost of the field and of everything selected in it. */
  readonly perItemOf?: string;
}

/** The most wallets of one operation, those in lists included: as many as one call to the network takes. */
export const MAX_WALLETS = 100;
/** The most collects of one operation. They run one after the other. */
export const MAX_COLLECTS = 10;

/** What is known of a field beyond its GraphQL type. */
export interface FieldMetadata {
  readonly cost?: FieldCost;
  /** The form of a string. */
  readonly pattern?: RegExp;
  /** Null means that the field failed, and an error says why. */
  readonly isNullOnlyOnError?: true;
}

/** Field options that store the metadata where {@link metadataOf} finds it. */
export function withMetadata(extensions: FieldMetadata) {
  return { extensions: { ...extensions } };
}

/** The metadata of a field of the schema. */
export function metadataOf({ extensions }: GraphQLField<unknown, unknown>): FieldMetadata {
  return extensions;
}

/** Options of a field that shows an amount in SOL; completes its description. */
export function solField(description: string) {
  return {
    ...withMetadata({ pattern: SOL_PATTERN }),
    description: `${description} In SOL, a decimal string with 4 digits after the point, truncated, never rounded up.`,
  };
}
