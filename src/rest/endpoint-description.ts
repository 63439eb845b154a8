import type { ContractError } from "../contract/contract-error.ts";
import type { ContractOperation } from "../contract/error-codes.ts";
import type { FailureMembers } from "./respond.ts";

/** The description of a REST endpoint, from which the OpenAPI document is generated. */
export interface EndpointDescription {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Selects the error codes that it returns. */
  readonly contractOperation: ContractOperation;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** `parameters` or `requestBody` of OpenAPI. */
  readonly request: object;
  /**
   * The text of the GraphQL operation that it runs for a request with mints. Without mints, it may run one
   * that selects less.
   */
  readonly graphqlOperation: string;
  readonly answers: readonly EndpointAnswer[];
  /** The name of the schema of its error bodies, and what they have besides `error` and `message`. Default: `Error`. */
  readonly failure?: { readonly name: string; readonly members: FailureMembers };
  /** Examples of the errors whose message or status is not that of the table in error-codes.ts. */
  readonly errorExamples: readonly ContractError[];
}

/** A response body generated from the operation's result. */
export interface EndpointAnswer {
  /** The name of its schema in the OpenAPI document. */
  readonly name: string;
  readonly status: number;
  readonly description: string;
  /** The result's members that the body has, all non-null. Default: all that the operation selects. */
  readonly members?: readonly string[];
  /** Members that always have this value. */
  readonly fixed?: Readonly<Record<string, boolean | string>>;
  /** The member that only the answer to a request with mints has, and an example of such an answer. */
  readonly withMints?: { readonly member: string; readonly example: object };
  /** The member that the answer has only if its value is known, and an example of such an answer. */
  readonly ifKnown?: { readonly member: string; readonly example: object };
  readonly example: object;
}

/** The header `Allow` for the methods of a path. */
export function allowHeader(methods: Readonly<Partial<Record<"GET" | "POST", unknown>>>): string {
  return [...(methods.GET ? ["GET", "HEAD"] : []), ...(methods.POST ? ["POST"] : []), "OPTIONS"].join(", ");
}
