import type { ContractError } from "../contract/errors.ts";

/** What a REST endpoint is to its callers; the OpenAPI document is made from it. */
export interface Endpoint {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** `parameters` or `requestBody`, as OpenAPI has them. */
  readonly request: object;
  /** The text of the GraphQL operation whose result it answers with. */
  readonly operation: string;
  readonly answers: readonly EndpointAnswer[];
  /** One of each error that it throws. */
  readonly errors: readonly ContractError[];
}

/** A body that is made from the operation's result. */
export interface EndpointAnswer {
  readonly status: number;
  readonly description: string;
  /** The members of the result that it has, none of them null; default: all that the operation selects. */
  readonly members?: readonly string[];
  /** Members that always have this value. */
  readonly fixed?: Readonly<Record<string, boolean | string>>;
  readonly example: object;
}
