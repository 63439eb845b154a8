import { ContractError } from "../errors.ts";
import type { Caller } from "../resolvers/caller.ts";
import type { HandleFormat } from "../resolvers/look-up-wallet.ts";
import type { Prepare } from "./operation.ts";
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
    if (others.length > 0) {
      throw new ContractError("INVALID_HANDLE", {
        message: `Give one handle: the handle must be ${expected}.`,
      });
    }
    return respondJson(200, await lookUp(handle, caller));
  };
}
