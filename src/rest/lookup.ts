import { parse } from "graphql";
import { ContractError } from "../errors.ts";
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

export type Lookup = (query: URLSearchParams) => Promise<Response>;

/** `GET /wallet/lookup?handle=`: the wallet as the schema gives it. */
export function createLookup(runOperation: RunOperation): Lookup {
  return async (query) => {
    const [handle, ...others] = query.getAll("handle");
    if (handle === undefined) throw new ContractError("HANDLE_REQUIRED");
    if (others.length > 0)
      throw new ContractError("INVALID_HANDLE", { message: "Give one handle, not several." });
    const { wallet } = await runOperation<{ wallet: object }>(LOOKUP_OPERATION, { handle });
    return respondJson(200, wallet);
  };
}
