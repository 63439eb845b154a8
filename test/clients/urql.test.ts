import {
  cacheExchange,
  Client,
  fetchExchange,
  gql,
  type CombinedError,
  type Exchange,
} from "@urql/core";
import { cacheExchange as graphcache } from "@urql/exchange-graphcache";
import { getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { recordFetch } from "../support/recorded-fetch.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "10" });
});
afterAll(() => world.close());

const GRAPHQL_TYPE = "application/graphql-response+json; charset=utf-8";

const WALLET = gql<any, { handle: string }>`
  query Wallet($handle: String!) {
    wallet(handle: $handle) {
      id
      handle
      socialId
      address
      balance {
        vault
        total
      }
    }
  }
`;
const WALLETS = gql<any, { handles: string[] }>`
  query Wallets($handles: [String!]!) {
    wallets(handles: $handles) {
      id
      handle
    }
  }
`;
const COLLECT = gql<any, { socialId: string }>`
  mutation Collect($socialId: String!) {
    collect(socialId: $socialId) {
      success
      collected
      wallet {
        id
        balance {
          vault
          total
        }
      }
    }
  }
`;

const COINS = gql<any, { handle: string; mints: string[] }>`
  query Coins($handle: String!, $mints: [String!]!) {
    wallet(handle: $handle) {
      id
      balance(mints: $mints) {
        vault
      }
      coins(mints: $mints) {
        mint
      }
    }
  }
`;

let clients = 0;
/** Creates a client with an address of its own, in the rate limit. */
function createClient(cache: Exchange, options: { preferGetMethod?: boolean } = {}) {
  const { exchanges, fetch } = recordFetch(`192.0.2.${++clients}`);
  const client = new Client({
    url: `${world.url}/graphql`,
    exchanges: [cache, fetchExchange],
    fetch,
    ...options,
  });
  return { client, exchanges };
}

/** The path and extensions of each GraphQL error; fails for an error of the network. */
const errorsIn = (error: CombinedError | undefined) =>
  error?.networkError
    ? expect.fail(String(error.networkError))
    : error?.graphQLErrors.map(({ path, extensions }) => ({ path, extensions }));

/**
 * The cache that identifies objects, as its documentation sets it up: with the schema, it knows
 * what may be null.
 */
async function createGraphcache(): Promise<Exchange> {
  const { data } = (await world.graphql(getIntrospectionQuery())).body;
  return graphcache({
    schema: data,
    keys: { Balance: () => null, Coin: () => null, CollectResult: () => null },
  });
}

describe.each([
  ["the document cache", "artist001", () => cacheExchange, ["GET", "POST", "GET"]],
  // Only graphcache takes the new balance from the response to the collect.
  ["@urql/exchange-graphcache", "artist002", createGraphcache, ["GET", "POST"]],
] as const)("urql with %s", (_name, artist, createCache, methods) => {
  it.each([
    ["GET, its default", {}, "GET"],
    ["POST", { preferGetMethod: false }, "POST"],
  ])("reads a wallet over %s", async (_method, options, method) => {
    const { client, exchanges } = createClient(await createCache(), options);
    for (const requestPolicy of ["network-only", "network-only", "cache-first"] as const) {
      const { data, error } = await client.query(WALLET, { handle: "creator" }, { requestPolicy });
      expect(error).toBeUndefined();
      expect(data.wallet).toMatchObject({
        handle: "creator",
        address: world.account("creator").address,
        balance: { vault: "3.1000", total: "8.3000" },
      });
    }
    expect(exchanges).toEqual(
      Array(2).fill(expect.objectContaining({ method, status: 200, type: GRAPHQL_TYPE })),
    );
  });

  it("gets the code of an unknown handle", async () => {
    const { client } = createClient(await createCache());
    const { error } = await client.query(WALLET, { handle: "nobodyatall" });
    expect(errorsIn(error)).toMatchObject([
      { path: ["wallet"], extensions: { code: "SOCIAL_NOT_FOUND" } },
    ]);
  });

  it("keeps the other wallets when one fails", async () => {
    const { client } = createClient(await createCache());
    const handles = ["creator", "nobodyatall", "newcomer"];
    const { data, error } = await client.query(WALLETS, { handles });
    expect(data.wallets.map((wallet: any) => wallet?.handle)).toEqual([
      "creator",
      undefined,
      "newcomer",
    ]);
    expect(errorsIn(error)).toMatchObject([
      { path: ["wallets", 1], extensions: { code: "SOCIAL_NOT_FOUND", handle: "nobodyatall" } },
    ]);
  });

  it("reads the errors of a request that the service refuses as a whole", async () => {
    const { client, exchanges } = createClient(await createCache());
    const invalid = await client.query(WALLET, { handle: 5 as never });
    expect(errorsIn(invalid.error)).toMatchObject([{ extensions: { code: "BAD_REQUEST" } }]);
    const query = () =>
      client.query(WALLET, { handle: "newcomer" }, { requestPolicy: "network-only" });
    for (let i = 1; i < 10; i++) await query();
    expect(errorsIn((await query()).error)).toMatchObject([
      { extensions: { code: "RATE_LIMITED", retryAfterSeconds: expect.any(Number) } },
    ]);
    expect([exchanges[0]!.status, exchanges.at(-1)!.status]).toEqual([400, 429]);
  });

  it("keeps the figures of a query when another names coins of the same wallet", async () => {
    const { client } = createClient(await createCache());
    const handle = "launcher";
    const mint = world.account(handle).coins[0]!.mint;
    const shown: unknown[] = [];
    const { unsubscribe } = client.query(WALLET, { handle }).subscribe(({ data, stale }) => {
      if (data && !stale) shown.push(data.wallet.balance.vault);
    });
    await eventually(() => {
      expect(shown).toEqual(["1.2500"]);
    });
    const { data } = await client.query(COINS, { handle, mints: [mint] });
    expect(data.wallet).toMatchObject({ balance: { vault: "6.2500" }, coins: [{ mint }] });
    const cached = [
      client.readQuery(WALLET, { handle }),
      client.readQuery(COINS, { handle, mints: [mint] }),
    ];
    expect(cached.map((result) => result!.data.wallet.balance.vault)).toEqual(["1.2500", "6.2500"]);
    expect(new Set(shown)).toEqual(new Set(["1.2500"]));
    unsubscribe();
  });

  it("shows the new balance after a collect", async () => {
    const { socialId, balance } = (await world.lookup(artist)).body;
    const { client, exchanges } = createClient(await createCache());
    const shown: string[] = [];
    const { unsubscribe } = client
      .query(WALLET, { handle: artist })
      .subscribe(({ data, stale }) => {
        if (data && !stale) shown.push(data.wallet.balance.vault);
      });
    await eventually(() => {
      expect(shown).toEqual([balance.vault]);
    });
    const { data, error } = await client.mutation(COLLECT, { socialId });
    expect(error).toBeUndefined();
    expect(data.collect).toMatchObject({ success: true, collected: balance.vault });
    await eventually(() => {
      expect(shown).toEqual([balance.vault, "0.0000"]);
    });
    expect(exchanges.map(({ method }) => method)).toEqual(methods);
    unsubscribe();
  });
});
