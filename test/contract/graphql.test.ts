import { describe, expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

const it = withWorld({ SOCIAL_CACHE_SECONDS: "0" });

const artists = (count: number) =>
  Array.from({ length: count }, (_, i) => `artist${String(i + 1).padStart(3, "0")}`);
const aliased = (handles: readonly string[], fields: string) =>
  `{ ${handles.map((handle, i) => `w${i}: wallet(handle: "${handle}") { ${fields} }`).join("\n")} }`;
/** Counts calls to the network, and calls to the chain for balances. */
const upstreamCalls = () => ({
  social: world.sandbox.social.calls.length,
  chain: world.chainCalls().filter((method) => method === "getMultipleAccounts").length,
});

describe("wallet(handle)", () => {
  it("returns the fields of REST, exact lamports and the withdrawable balance", async () => {
    const { id, address } = world.account("creator");
    const fields =
      "handle socialId address balance { vault pda total withdrawable vaultLamports pdaLamports totalLamports withdrawableLamports }";
    const { status, body } = await world.graphql(`{ wallet(handle: "CREATOR") { ${fields} } }`);
    expect(status).toBe(200);
    expect(body).toEqual({
      data: {
        wallet: {
          handle: "creator",
          socialId: id,
          address,
          balance: {
            vault: "3.1000",
            pda: "5.2000",
            total: "8.3000",
            withdrawable: "8.1340",
            vaultLamports: "3100000000",
            pdaLamports: "5200000000",
            totalLamports: "8300000000",
            withdrawableLamports: "8134000000",
          },
        },
      },
    });
  });

  it("has retryAfterSeconds and status 200 when the network's rate limit is reached", async () => {
    const world = await startWorld();
    world.sandbox.social.faults.add({ then: { status: 429, body: "" } });
    const { status, headers, body } = await world.graphql(
      '{ wallet(handle: "creator") { address } }',
    );
    expect([status, headers.get("retry-after")]).toEqual([200, null]);
    expect(body.errors[0].extensions).toEqual({
      code: "SOCIAL_RATE_LIMITED",
      retryAfterSeconds: 60,
    });
    await world.close();
  });

  it("returns the other fields when the balance cannot be read", async () => {
    world.sandbox.rpc.faults.add({ then: "reset" });
    const { body } = await world.graphql(
      '{ wallet(handle: "creator") { handle balance { vault } } }',
    );
    expect(body.data).toEqual({ wallet: { handle: "creator", balance: null } });
    expect(body.errors[0]).toMatchObject({
      path: ["wallet", "balance"],
      extensions: { code: "LOOKUP_FAILED" },
    });
  });
});

describe("walletById(socialId)", () => {
  it("reads only the network for the handle, only the chain for the balance, and neither for the address", async () => {
    const { id, address } = world.account("artist001");
    const ask = async (fields: string) => {
      world.forgetCalls();
      const { body } = await world.graphql(`{ walletById(socialId: "${id}") { ${fields} } }`);
      return [body.data.walletById, upstreamCalls()];
    };
    expect(await ask("socialId address")).toEqual([
      { socialId: id, address },
      { social: 0, chain: 0 },
    ]);
    expect(await ask("handle")).toEqual([{ handle: "artist001" }, { social: 1, chain: 0 }]);
    expect(await ask("balance { pda }")).toEqual([
      { balance: { pda: "2.1000" } },
      { social: 0, chain: 1 },
    ]);
  });

  it("does not ask the network for ids above 2^63-1, which would refuse the whole call", async () => {
    const { id } = world.account("creator");
    const ids = ["9223372036854775807", "9223372036854775808", "18446744073709551615", id];
    const query =
      "query ($ids: [String!]!) { walletsById(socialIds: $ids) { socialId address handle profile { name } } }";
    world.forgetCalls();
    const { body } = await world.graphql(query, { ids });
    expect(world.sandbox.social.calls.map(({ names }) => names)).toEqual([[ids[0], id]]);
    const none = { address: expect.any(String), handle: null, profile: null };
    expect(body.data.walletsById).toMatchObject([none, none, none, { handle: "creator" }]);
    const failed = body.errors
      .map(({ path, extensions }: any) => [path.join("."), extensions.code])
      .sort();
    expect(failed).toEqual(
      [0, 1, 2].flatMap((i) =>
        ["handle", "profile"].map((field) => [`walletsById.${i}.${field}`, "SOCIAL_NOT_FOUND"]),
      ),
    );
  });
});

describe("node(id)", () => {
  it("is the wallet of `walletById`, at its price", async () => {
    const { id } = world.account("creator");
    const fields = "id handle balance { vault }";
    const { body } = await world.graphql(
      `query ($id: ID!) { node(id: $id) { __typename id ...W ... on Node { id } }
         walletById(socialId: "${id}") { ${fields} } rateLimit { cost } }
       fragment W on Wallet { ${fields} }`,
      { id },
    );
    expect(body).toEqual({
      data: {
        node: { __typename: "Wallet", ...body.data.walletById },
        walletById: { id, handle: "creator", balance: { vault: "3.1000" } },
        rateLimit: { cost: 1 },
      },
    });
  });

  it("is null with INVALID_SOCIAL_ID for an id that is no social id", async () => {
    const { body } = await world.graphql('{ node(id: "x") { id } }');
    expect(body.data).toEqual({ node: null });
    expect(body.errors).toMatchObject([
      { path: ["node"], extensions: { code: "INVALID_SOCIAL_ID" } },
    ]);
  });

  it("refuses a JSON number that has lost digits, and takes one that has all, or a literal", async () => {
    const query = "query ($id: ID!) { node(id: $id) { id } }";
    const lossy = await world.graphql(query, { id: 2 ** 60 });
    expect([lossy.status, lossy.body.data]).toEqual([400, undefined]);
    expect(lossy.body.errors[0].message).toContain("Send ids as strings.");
    expect((await world.graphql(query, { id: 42 })).body.data.node.id).toBe("42");
    const { body } = await world.graphql("{ node(id: 18446744073709551615) { id } }");
    expect(body.data.node.id).toBe("18446744073709551615");
  });
});

describe("wallets(handles) and walletsById(socialIds)", () => {
  it("return wallets in the requested order, with the name as requested in the error of each that fails", async () => {
    const { id } = world.account("creator");
    const { body } = await world.graphql(
      `query ($handles: [String!]!, $ids: [String!]!) {
        wallets(handles: $handles) { handle }
        walletsById(socialIds: $ids) { socialId handle }
      }`,
      { handles: ["nobodyatall", "creator", "NoBodyAtAll", "a b"], ids: ["x", id, "0", id] },
    );
    const creator = { socialId: id, handle: "creator" };
    expect(body.data).toEqual({
      wallets: [null, { handle: "creator" }, null, null],
      walletsById: [null, creator, null, creator],
    });
    const failed = body.errors.map(({ path, extensions }: any) => [path.join("."), extensions]);
    expect(Object.fromEntries(failed)).toEqual({
      "wallets.0": { code: "SOCIAL_NOT_FOUND", handle: "nobodyatall" },
      "wallets.2": { code: "SOCIAL_NOT_FOUND", handle: "NoBodyAtAll" },
      "wallets.3": { code: "INVALID_HANDLE", handle: "a b" },
      "walletsById.0": { code: "INVALID_SOCIAL_ID", socialId: "x" },
      "walletsById.2": { code: "INVALID_SOCIAL_ID", socialId: "0" },
    });
  });
});

it("the errors do not mention REST", async () => {
  const { body } = await world.graphql(`mutation {
    bad: collect(socialId: "creator") { success }
    empty: collect(socialId: "") { success }
    coin: collect(socialId: "1", mints: "nonsense") { success }
  }`);
  expect(body.errors).toHaveLength(3);
  for (const { message } of body.errors) expect(message).not.toMatch(/GET |POST |JSON|\/wallet/);
});

describe("upstream calls", () => {
  it("of 100 aliased wallets with balances are 1 to the network and 4 to the chain", async () => {
    await world.lookup("creator"); // reads and caches the rent-exempt minimum
    world.forgetCalls();
    const { body } = await world.graphql(aliased(artists(100), "socialId balance { vault pda }"));
    expect(body.errors).toBeUndefined();
    expect(body.data.w99.socialId).toBe(world.account("artist100").id);
    expect(upstreamCalls()).toEqual({ social: 1, chain: 4 });
    expect(world.chainCalls()).toHaveLength(4);
  });
});

describe("collect(socialId)", () => {
  const FIELDS =
    "success collected collectedLamports newBalance newBalanceLamports txSignature error message";
  const collect = (id: string) =>
    world.graphql(`mutation { collect(socialId: "${id}") { ${FIELDS} } }`);

  it("moves fees, and reports an empty vault as data", async () => {
    const { id } = world.account("creator");
    expect((await collect(id)).body).toEqual({
      data: {
        collect: {
          success: true,
          collected: "3.1000",
          collectedLamports: "3100000000",
          newBalance: "8.3000",
          newBalanceLamports: "8300000000",
          txSignature: expect.any(String),
          error: null,
          message: null,
        },
      },
    });
    const again = await collect(id);
    expect(again.status).toBe(200);
    expect(again.body).toEqual({
      data: {
        collect: {
          success: false,
          collected: "0.0000",
          collectedLamports: "0",
          newBalance: null,
          newBalanceLamports: null,
          txSignature: null,
          error: "NOTHING_TO_COLLECT",
          message: expect.any(String),
        },
      },
    });
  });

  it("returns the wallet, with the balance after the collect", async () => {
    const { id, address } = world.account("graduate");
    const { body } = await world.graphql(
      `mutation { collect(socialId: "00${id}") { newBalance wallet { __typename id socialId handle address balance { vault pda } } } }`,
    );
    expect(body.errors).toBeUndefined();
    const { newBalance, wallet } = body.data.collect;
    expect(wallet).toEqual({
      __typename: "Wallet",
      id,
      socialId: id,
      handle: "graduate",
      address,
      balance: { vault: "0.0000", pda: newBalance },
    });
  });
});

describe("the endpoint", () => {
  it("answers BAD_REQUEST with the reason for an invalid variable", async () => {
    const number = await world.graphql(
      "mutation ($id: String!) { collect(socialId: $id) { success } }",
      {
        id: 1523400000000000123,
      },
    );
    expect(number.body.errors[0]).toMatchObject({
      message: expect.stringContaining("Send ids as strings."),
      extensions: { code: "BAD_REQUEST", moved: "no" },
    });
    const { status, body } = await world.request("/graphql?query={__typename}&variables={", {
      headers: { accept: "application/json" },
    });
    expect([status, body.errors[0].extensions.code]).toEqual([400, "BAD_REQUEST"]);
  });

  it("does not quote a body that is not JSON", async () => {
    const { status, body } = await world.request("/graphql", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{ secret",
    });
    expect([status, body.errors.length]).toEqual([400, 1]);
    expect(JSON.stringify(body)).not.toMatch(/secret|SyntaxError|position/);
  });

  it("shows no internal error detail", async () => {
    world.sandbox.rpc.faults.add({
      then: { status: 500, body: "internal detail of the provider" },
    });
    const { body } = await world.graphql('{ wallet(handle: "creator") { balance { vault } } }');
    expect(JSON.stringify(body)).not.toMatch(
      /internal detail|127\.0\.0\.1|\.ts|node_modules|stack|getMultiple/,
    );
  });
});
