import { parse } from "graphql";
import { ContractError } from "../errors.ts";
import type { Caller } from "../resolvers/loaders.ts";
import type { HandleFormat } from "../resolvers/look-up-wallet.ts";
import type { RunOperation } from "./operation.ts";
import { respondJson } from "./respond.ts";

const LOOKUP_OPERATION = parse(/* GraphQL */ `
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
`);

export type Lookup = (query: URLSearchParams, caller: Caller) => Promise<Response>;

/** `GET /wallet/lookup?handle=`: the wallet as the schema gives it. */
export function createLookup(runOperation: RunOperation, { expected }: HandleFormat): Lookup {
  return async (query, caller) => {
    const [handle, ...others] = query.getAll("handle");
    if (handle === undefined) throw new ContractError("HANDLE_REQUIRED");
    if (others.length > 0) {
      throw new ContractError("INVALID_HANDLE", {
        message: `Give one handle: the handle must be ${expected}.`,
      });
    }
    const { wallet } = await runOperation<{ wallet: object }>(LOOKUP_OPERATION, { handle }, caller);
    return respondJson(200, wallet);
  };
}
