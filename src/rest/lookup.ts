import { ContractError, quote } from "../contract/errors.ts";
import type { Caller } from "../resolvers/request-scope.ts";
import { invalidHandle, type HandleFormat } from "../resolvers/look-up-wallet.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Prepare } from "./prepared-operation.ts";
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

/** What the sandbox answers at first. */
const EXAMPLE = {
  handle: "creator",
  socialId: "1523400000000000123",
  address: "gfDqkYvEaRSVA9choWTZJPPyHhp2mJ1GFZnU5AuZUk6",
  balance: { vault: "3.1000", pda: "5.2000", total: "8.3000" },
};

/** `GET /wallet/lookup` as it is told to its callers. */
export function lookupEndpoint({ pattern, expected }: HandleFormat): Endpoint {
  return {
    method: "GET",
    path: "/wallet/lookup",
    operationId: "lookUpWallet",
    summary: "Looks up the address and the balance of a handle",
    description:
      "Gives the address to name as the creator of a token on the launch platform, and what has come in for it. " +
      "Keep `socialId`: `POST /collect` takes it, and it stays when the account changes its handle. " +
      "The balance is read from the chain for each answer.",
    request: {
      parameters: [
        {
          name: "handle",
          in: "query",
          required: true,
          description: `The account's handle: ${expected}, without the @, in upper or lower case.`,
          schema: { type: "string", pattern: pattern.source },
          example: EXAMPLE.handle,
        },
      ],
    },
    operation: LOOKUP_OPERATION,
    answers: [{ status: 200, description: "The account's wallet.", example: EXAMPLE }],
    errors: [
      new ContractError("HANDLE_REQUIRED"),
      invalidHandle(expected, quote(`@${EXAMPLE.handle}`)),
      new ContractError("SOCIAL_NOT_FOUND"),
      new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: 300 }),
      new ContractError("SOCIAL_API_UNAVAILABLE"),
      new ContractError("SERVICE_BUSY"),
      new ContractError("LOOKUP_FAILED"),
    ],
  };
}

export type LookUp = (handle: string, caller: Caller) => Promise<object>;

/** The wallet of a handle as the schema gives it. */
export function createLookUp(prepare: Prepare): LookUp {
  const run = prepare<{ wallet: object }>(LOOKUP_OPERATION);
  return async (handle, caller) => (await run({ handle }, caller)).wallet;
}

/** `GET /wallet/lookup?handle=`. */
export function createLookupHandler(
  lookUp: LookUp,
  { expected }: HandleFormat,
): (query: URLSearchParams, caller: Caller) => Promise<Response> {
  return async (query, caller) => {
    const [handle, ...others] = query.getAll("handle");
    if (handle === undefined) throw new ContractError("HANDLE_REQUIRED");
    if (others.length > 0) throw invalidHandle(expected, `${others.length + 1} handles`);
    return respondJson(200, await lookUp(handle, caller));
  };
}
