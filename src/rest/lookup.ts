import { errorWithPath } from "../contract/contract-error.ts";
import { respondJson } from "../contract/http-messages.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { assertMintNames, toMints } from "../contract/mint.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import type { PrepareOperation } from "./prepared-operation.ts";

const LOOKUP_OPERATION = /* GraphQL */ `
  query Lookup($handle: String!, $mints: [String!]!) {
    wallet(handle: $handle) {
      handle
      socialId
      address
      derivation {
        program
        seeds
        bump
      }
      balance(mints: $mints) {
        vault
        pda
        total
        withdrawable
      }
      profile {
        name
        verified
        followers
        pictureUrl
      }
      coins(mints: $mints) {
        mint
        stage
        waiting
        amount
        quoteMint
        shareBps
        collectable
        reason
      }
    }
  }
`;

/** `mints` is a collect's name, and `mint[]` that of axios, PHP and n8n for a list. */
const MINT_PARAMETERS = ["mint", "mints", "mint[]"];

/**
 * `GET /wallet/lookup?handle=&mint=`: returns the wallet of the GraphQL query, with `coins` if
 * there are mints.
 */
export function createLookupHandler(
  prepare: PrepareOperation,
  format: HandleFormat,
  basePath: string,
): (request: Request, scope: RequestScope) => Promise<Response> {
  const run = prepare<{ wallet: { profile: Record<string, unknown>; coins: unknown } }>(
    LOOKUP_OPERATION,
  );
  return async ({ url }, scope) => {
    const variables = readQuery(new URL(url).searchParams, format, basePath);
    const { wallet } = await run(variables, scope);
    const { profile } = wallet;
    // Turn null into undefined, which JSON.stringify omits.
    for (const name in profile) profile[name] ??= undefined;
    if (variables.mints.length === 0) wallet.coins = undefined;
    return respondJson(200, wallet);
  };
}

function readQuery(
  parameters: URLSearchParams,
  format: HandleFormat,
  basePath: string,
): { handle: string; mints: readonly string[] } {
  const [handle, ...others] = parameters.getAll("handle");
  if (handle === undefined) throw errorWithPath("HANDLE_REQUIRED", basePath);
  if (others.length > 0) throw invalidHandle(format, `${others.length + 1} handles`);
  assertMintNames(parameters.keys(), MINT_PARAMETERS);
  // Forms send empty parameters.
  const mints = MINT_PARAMETERS.flatMap((name) => parameters.getAll(name)).filter(Boolean);
  // Check the mints first: the operation would check them only after it has looked up the handle.
  if (format.pattern.test(handle)) toMints(mints);
  return { handle, mints };
}
