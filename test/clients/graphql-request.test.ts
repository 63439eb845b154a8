import { ClientError, GraphQLClient } from "graphql-request";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordFetch } from "../support/recorded-fetch.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "10" });
});
afterAll(() => world.close());

const GRAPHQL_TYPE = "application/graphql-response+json; charset=utf-8";
const WALLET =
  "query Wallet($handle: String!) { wallet(handle: $handle) { handle address balance { vault } } }";
const WALLETS = "query Wallets($handles: [String!]!) { wallets(handles: $handles) { handle } }";
const COLLECT =
  "mutation Collect($socialId: String!) { collect(socialId: $socialId) { success collected wallet { balance { vault } } } }";

let clients = 0;
/** Creates a client with an address of its own, in the rate limit. */
function createClient(options: ConstructorParameters<typeof GraphQLClient>[1] = {}) {
  const { exchanges, fetch } = recordFetch(`192.0.2.${++clients}`);
  return { client: new GraphQLClient(`${world.url}/graphql`, { fetch, ...options }), exchanges };
}

/** The response of a request that must fail with one. */
async function responseOf(request: Promise<unknown>) {
  const error: unknown = await request.then(
    () => expect.fail("the request succeeded"),
    (reason: unknown) => reason,
  );
  return error instanceof ClientError ? error.response : expect.fail(String(error));
}

describe("graphql-request", () => {
  it.each(["POST", "GET"] as const)("reads a wallet over %s", async (method) => {
    const { client, exchanges } = createClient({ method });
    for (let i = 0; i < 2; i++) {
      const { wallet } = await client.request(WALLET, { handle: "creator" });
      expect(wallet).toEqual({
        handle: "creator",
        address: world.account("creator").address,
        balance: { vault: "3.1000" },
      });
    }
    expect(exchanges).toEqual(
      Array(2).fill(expect.objectContaining({ method, status: 200, type: GRAPHQL_TYPE })),
    );
  });

  it("rejects with the code of an unknown handle", async () => {
    const { client } = createClient();
    const { status, errors } = await responseOf(client.request(WALLET, { handle: "nobodyatall" }));
    expect(status).toBe(200);
    expect(errors).toMatchObject([{ path: ["wallet"], extensions: { code: "SOCIAL_NOT_FOUND" } }]);
  });

  it("keeps the other wallets when one fails, with errorPolicy all", async () => {
    const { client } = createClient({ errorPolicy: "all" });
    const handles = ["creator", "nobodyatall", "newcomer"];
    const { data, errors } = await client.rawRequest(WALLETS, { handles });
    expect(data.wallets).toEqual([{ handle: "creator" }, null, { handle: "newcomer" }]);
    expect(errors).toMatchObject([
      { path: ["wallets", 1], extensions: { code: "SOCIAL_NOT_FOUND", handle: "nobodyatall" } },
    ]);
  });

  it("reads the errors of a request that the service refuses as a whole", async () => {
    const { client } = createClient();
    expect(await responseOf(client.request("{ nothing }"))).toMatchObject({
      status: 400,
      errors: [{ extensions: { code: "GRAPHQL_VALIDATION_FAILED" } }],
    });
    for (let i = 1; i < 10; i++) await client.request(WALLET, { handle: "newcomer" });
    const refused = await responseOf(client.request(WALLET, { handle: "newcomer" }));
    expect(refused).toMatchObject({
      status: 429,
      errors: [{ extensions: { code: "RATE_LIMITED" } }],
    });
    expect(refused.headers.get("retry-after")).toBe(
      String(refused.errors![0]!.extensions.retryAfterSeconds),
    );
  });

  it("collects, and finds the vault empty", async () => {
    const { client } = createClient();
    const { socialId, balance } = (await world.lookup("artist001")).body;
    expect(await client.request(COLLECT, { socialId })).toEqual({
      collect: {
        success: true,
        collected: balance.vault,
        wallet: { balance: { vault: "0.0000" } },
      },
    });
    expect(await client.request(COLLECT, { socialId })).toMatchObject({
      collect: { success: false, collected: "0.0000" },
    });
  });
});
