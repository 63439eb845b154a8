import { ContractError, quote } from "../contract/contract-error.ts";
import { invalidHandle, type HandleFormat } from "../contract/handle.ts";
import { invalidMint, MAX_MINTS, MINT_PATTERN, toMints } from "../contract/mint.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import type { EndpointDescription } from "./endpoint-description.ts";
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

/** The response of a fresh sandbox. */
const EXAMPLE = {
  handle: "creator",
  socialId: "1523400000000000123",
  address: "gfDqkYvEaRSVA9choWTZJPPyHhp2mJ1GFZnU5AuZUk6",
  balance: { vault: "3.1000", pda: "5.2000", total: "8.3000", withdrawable: "8.1340" },
  profile: { name: "The Creator", verified: true, followers: 1284000 },
};

/** The response of a fresh sandbox for `launcher` and a coin of that account. */
const EXAMPLE_WITH_COINS = {
  handle: "launcher",
  socialId: "1477850023391002",
  address: "FBPDdfpbMweBco4nhqyCKX8Agvq7oNGiDkng6EdHfyvp",
  balance: { vault: "6.2500", pda: "1.5000", total: "7.7500", withdrawable: "7.5950" },
  profile: { name: "Launcher", verified: false, followers: 0 },
  coins: [
    {
      mint: "BsZgJaxMAUbfUHZ3wbFEEXCUWwRhZvYHYMRCCpEsxi2Y",
      stage: "CURVE",
      waiting: "5.0000",
      amount: "5000000000",
      quoteMint: "So11111111111111111111111111111111111111112",
      shareBps: 10000,
      collectable: true,
      reason: null,
    },
  ],
};

/** The description of `GET /wallet/lookup`. */
export function lookupEndpoint(format: HandleFormat): EndpointDescription {
  return {
    method: "GET",
    path: "/wallet/lookup",
    contractOperation: "lookup",
    operationId: "lookUpWallet",
    summary: "Look up the address and balance of a handle",
    description:
      "Returns the address to set as the creator of a token on the launch platform, and its balance. " +
      "Keep `socialId`: `POST /collect` needs it, and it stays the same if the account changes its handle. " +
      "The balance is read from the chain for every response. " +
      `Since October 2026 creator fees wait on each coin until someone sweeps them to the vault; the launch platform does so from time to time for 0.001 SOL or more, without promising it. Name up to ${MAX_MINTS} coins, each with a \`mint\`, to see the fees that wait on them. \`balance\` then also counts those that collects of the same coins move. ` +
      "Of a coin whose fees are shared, `coins` has the account's share. Coins with holder rewards or cashback never pay the address.",
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
        {
          name: "mint",
          in: "query",
          required: false,
          description:
            "The mint of a coin, in base58; repeatable. The response then has `coins`: an entry for each place where fees of a coin wait.",
          schema: {
            type: "array",
            maxItems: MAX_MINTS,
            items: { type: "string", pattern: MINT_PATTERN.source },
          },
          example: [],
        },
      ],
    },
    graphqlOperation: LOOKUP_WITH_COINS_OPERATION,
    answers: [
      {
        name: "Wallet",
        status: 200,
        description: "The account's wallet.",
        withMints: { member: "coins", example: EXAMPLE_WITH_COINS },
        example: EXAMPLE,
      },
    ],
    errorExamples: [
      invalidHandle(format, quote(`@${EXAMPLE.handle}`)),
      invalidMint("nonsense"),
      new ContractError("SOCIAL_RATE_LIMITED", { retryAfterSeconds: 300 }),
      new ContractError("SOCIAL_API_UNAVAILABLE"),
      new ContractError("SOCIAL_API_UNAVAILABLE", {
        message: "The social network is temporarily unavailable. Try again in 30 seconds.",
        retryAfterSeconds: 30,
      }),
    ],
  };
}

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
