import { ContractError, quote } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import type { Endpoint } from "./endpoint.ts";
import type { PrepareOperation } from "./prepared-operation.ts";
import { respondJson } from "./respond.ts";

const LOOKUP_OPERATION = /* GraphQL */ `
  query Lookup($handle: String!) {
    wallet(handle: $handle) {
      handle
      socialId
      address
      balance {
        vault
        pda
        total
      }
    }
  }
`;

/** The response of a fresh sandbox. */
const EXAMPLE = {
  handle: "creator",
  socialId: "1523400000000000123",
  address: "gfDqkYvEaRSVA9choWTZJPPyHhp2mJ1GFZnU5AuZUk6",
  balance: { vault: "3.1000", pda: "5.2000", total: "8.3000" },
};

/** The description of `GET /wallet/lookup`. */
export function lookupEndpoint(format: HandleFormat): Endpoint {
  return {
    method: "GET",
    path: "/wallet/lookup",
    contractOperation: "lookup",
    operationId: "lookUpWallet",
    summary: "Look up the address and balance of a handle",
    description:
      "Returns the address to set as the creator of a token on the launch platform, and its balance. " +
      "Keep `socialId`: `POST /collect` needs it, and it stays the same if the account changes its handle. " +
      "The balance is read from the chain for every response.",
    request: {
      parameters: [
        {
          name: "handle",
          in: "query",
          required: true,
          description: `The account's handle: ${format.expected}, without the @, case-insensitive.`,
          schema: { type: "string", pattern: format.pattern.source },
          example: EXAMPLE.handle,
        },
      ],
    },
    graphqlOperation: LOOKUP_OPERATION,
    answers: [{ name: "Wallet", status: 200, description: "The account's wallet.", example: EXAMPLE }],
    errorExamples: [
      invalidHandle(format, quote(`@${EXAMPLE.handle}`)),
      new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: 300 }),
    ],
  };
}

/** Runs the lookup's GraphQL operation; returns its `wallet`. */
export type LookUp = (handle: string, scope: RequestScope) => Promise<object>;

export function createLookUp(prepare: PrepareOperation): LookUp {
  const run = prepare<{ wallet: object }>(LOOKUP_OPERATION);
  return async (handle, scope) => (await run({ handle }, scope)).wallet;
}

/** `GET /wallet/lookup?handle=`. */
export function createLookupHandler(
  lookUp: LookUp,
  format: HandleFormat,
): (query: URLSearchParams, scope: RequestScope) => Promise<Response> {
  return async (query, scope) => {
    const [handle, ...others] = query.getAll("handle");
    if (handle === undefined) throw new ContractError("HANDLE_REQUIRED");
    if (others.length > 0) throw invalidHandle(format, `${others.length + 1} handles`);
    return respondJson(200, await lookUp(handle, scope));
  };
}
