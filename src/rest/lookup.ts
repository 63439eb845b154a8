import { ContractError } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { toMints } from "../contract/mint.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
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
        withdrawable
      }
      profile {
        name
        verified
        followers
        pictureUrl
      }
    }
  }
`;

const LOOKUP_WITH_COINS_OPERATION = /* GraphQL */ `
  query LookupWithCoins($handle: String!, $mints: [String!]!) {
    wallet(handle: $handle) {
      handle
      socialId
      address
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

/** Runs the lookup's GraphQL operation; returns its `wallet`, with `coins` if there are mints. */
export type LookUp = (handle: string, scope: RequestScope, mints?: readonly string[]) => Promise<object>;

interface LookupData {
  readonly wallet: { readonly profile: Record<string, unknown> };
}

export function createLookUp(prepare: PrepareOperation): LookUp {
  const run = prepare<LookupData>(LOOKUP_OPERATION);
  const runWithCoins = prepare<LookupData>(LOOKUP_WITH_COINS_OPERATION);
  return async (handle, scope, mints = []) => {
    const { wallet } =
      mints.length === 0 ? await run({ handle }, scope) : await runWithCoins({ handle, mints }, scope);
    const { profile } = wallet;
    // JSON.stringify omits undefined members.
    for (const name in profile) profile[name] ??= undefined;
    return wallet;
  };
}

/** `GET /wallet/lookup?handle=&mint=`. */
export function createLookupHandler(
  lookUp: LookUp,
  format: HandleFormat,
): (query: URLSearchParams, scope: RequestScope) => Promise<Response> {
  return async (query, scope) => {
    const [handle, ...others] = query.getAll("handle");
    if (handle === undefined) throw new ContractError("HANDLE_REQUIRED");
    if (others.length > 0) throw invalidHandle(format, `${others.length + 1} handles`);
    // `mints` is the name in a collect.
    const mints = [...query.getAll("mint"), ...query.getAll("mints")];
    // The operation would check them after it has looked up the handle.
    if (format.pattern.test(handle)) toMints(mints);
    return respondJson(200, await lookUp(handle, scope, mints));
  };
}
