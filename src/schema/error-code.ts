import {
  codesOf,
  ERROR_CODES,
  type ContractOperation,
  type ErrorCode,
} from "../contract/error-codes.ts";
import { builder, enumValues } from "./builder.ts";

const messages = Object.fromEntries(
  Object.entries(ERROR_CODES).map(([code, { message }]) => [code, message]),
) as Record<ErrorCode, string>;

export const ErrorCodeType = builder.enumType("ErrorCode", {
  description:
    "The error codes: `extensions.code` of GraphQL errors, and `error` of REST errors. A request that is not valid GraphQL gets the usual codes of GraphQL servers: BAD_REQUEST, GRAPHQL_PARSE_FAILED, GRAPHQL_VALIDATION_FAILED, OPERATION_RESOLUTION_FAILURE, or PERSISTED_QUERY_NOT_SUPPORTED for a persisted query without its text.",
  values: enumValues(messages),
});

/** The codes that a field fails with, for its description: `A, B or C`. */
export function listCodes(
  operation: ContractOperation,
  without: readonly ErrorCode[] = [],
): string {
  const codes = codesOf(operation).filter((code) => !without.includes(code));
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(codes);
}
