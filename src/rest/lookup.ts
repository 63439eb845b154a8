import { errorWithPath } from "../contract/contract-error.ts";
import { respondJson } from "../contract/http-messages.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { assertMintNames, toMints } from "../contract/mint.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { dataOf, type PrepareOperation } from "./prepared-operation.ts";
import { toRestWallet, walletFragment, type RestWallet } from "./wallet.ts";

const LOOKUP_OPERATION = /* GraphQL */ `
  query Lookup($handle: String!, $mints: [String!]!) {
    wallet(handle: $handle) {
      ...RestWallet
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
  ${walletFragment("(mints: $mints)")}
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
) {
  const run = prepare(LOOKUP_OPERATION);
  return async ({ url }: Request, scope: RequestScope): Promise<Response> => {
    await scope.admit(1);
    const { searchParams } = new URL(url);
    const [handle, ...others] = searchParams.getAll("handle");
    if (handle === undefined) throw errorWithPath("HANDLE_REQUIRED", basePath);
    if (others.length > 0) throw invalidHandle(format, `${others.length + 1} handles`);
    assertMintNames(searchParams.keys(), MINT_PARAMETERS);
    // Forms send empty parameters.
    const mints = MINT_PARAMETERS.flatMap((name) => searchParams.getAll(name)).filter(Boolean);
    // Check the mints first: the operation would check them only after it has looked up the handle.
    if (format.pattern.test(handle)) toMints(mints);
    const { wallet } = dataOf<{ wallet: RestWallet & { coins: object } }>(
      await run({ handle, mints }, scope),
    );
    const { coins, ...shown } = toRestWallet(wallet);
    return respondJson(200, { ...shown, ...(mints.length > 0 && { coins }) });
  };
}
