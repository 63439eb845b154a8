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

  it.each([
    ["creator!", "INVALID_HANDLE"],
    ["", "INVALID_HANDLE"],
    ["nobodyatall", "SOCIAL_NOT_FOUND"],
    ["suspended", "SOCIAL_NOT_FOUND"],
  ])("fails for %j with %s at its path and status 200", async (handle, code) => {
    const { status, body } = await world.graphql(
      "query ($handle: String!) { wallet(handle: $handle) { address } }",
      { handle },
    );
    expect(status).toBe(200);
    expect(body.data).toEqual({ wallet: null });
    expect(body.errors).toHaveLength(1);
    expect(body.errors[0]).toMatchObject({
      path: ["wallet"],
      extensions: { code },
      message: expect.any(String),
    });
  });

  it("does not affect other fields when it fails", async () => {
    const { body } = await world.graphql(
      aliased(["creator", "nobodyatall", "no good", "dusty"], "handle"),
    );
    expect(body.data).toEqual({
      w0: { handle: "creator" },
      w1: null,
      w2: null,
      w3: { handle: "dusty" },
    });
    expect(body.errors.map(({ path, extensions }: any) => [path, extensions.code])).toEqual(
      expect.arrayContaining([
        [["w1"], "SOCIAL_NOT_FOUND"],
        [["w2"], "INVALID_HANDLE"],
      ]),
    );
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

  it("has no handle for an unknown id", async () => {
    const { body } = await world.graphql('{ walletById(socialId: "99") { handle address } }');
    expect(body.data.walletById).toEqual({ handle: null, address: expect.any(String) });
    expect(body.errors[0]).toMatchObject({
      path: ["walletById", "handle"],
      extensions: { code: "SOCIAL_NOT_FOUND" },
    });
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

  it("refuses an invalid id, and drops leading zeros", async () => {
    const { body } = await world.graphql('{ a: walletById(socialId: "x") { address } }');
    expect(body.errors[0].extensions.code).toBe("INVALID_SOCIAL_ID");
    const { body: same } = await world.graphql(
      '{ a: walletById(socialId: "0042") { address socialId } b: walletById(socialId: "42") { address socialId } }',
    );
    expect(same.data.a).toEqual(same.data.b);
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
    const { body: costly } = await world.graphql(
      `{ ${artists(101)
        .map((_, i) => `n${i}: node(id: "${i + 1}") { id }`)
        .join(" ")} }`,
    );
    expect(costly.errors[0].message).toContain("Too many wallets");
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

  it("has merged fields compared across fragments on the interface and on the wallet", async () => {
    const select = (a: string, b: string) =>
      world.graphql(
        `{ node(id: "7") { ... on Node { ... on Wallet { ${a} } } ...W } } fragment W on Wallet { ... on Node { ... on Wallet { ${b} } } }`,
      );
    const equal = await select("balance { vault }", "balance { pda }");
    expect(equal.body.data.node).toEqual({ balance: { vault: "0.0000", pda: "0.0000" } });
    const { body } = await select("x: address", "x: socialId");
    expect([body.data, body.errors[0].message]).toEqual([
      undefined,
      expect.stringContaining('Fields "x" conflict'),
    ]);
  });
});

describe("wallets(handles)", () => {
  it("returns wallets in the requested order, with an error at the index of each that fails", async () => {
    const { body } = await world.graphql(
      '{ wallets(handles: ["dusty", "nobodyatall", "creator", "a b"]) { handle } }',
    );
    expect(body.data.wallets).toEqual([{ handle: "dusty" }, null, { handle: "creator" }, null]);
    expect(body.errors.map(({ path, extensions }: any) => [path, extensions.code]).sort()).toEqual([
      [["wallets", 1], "SOCIAL_NOT_FOUND"],
      [["wallets", 3], "INVALID_HANDLE"],
    ]);
  });

  it("names the handle as it was requested in each error, also for a handle in several spellings", async () => {
    const query = "query ($handles: [String!]!) { wallets(handles: $handles) { handle } }";
    const handles = ["nobodyatall", "creator", "NoBodyAtAll", "a b"];
    for (let i = 0; i < 3; i++) {
      const { body } = await world.graphql(query, { handles });
      const named = body.errors.map(({ path, extensions }: any) => [path[1], extensions]);
      expect(Object.fromEntries(named)).toEqual({
        0: { code: "SOCIAL_NOT_FOUND", handle: "nobodyatall" },
        2: { code: "SOCIAL_NOT_FOUND", handle: "NoBodyAtAll" },
        3: { code: "INVALID_HANDLE", handle: "a b" },
      });
    }
    const { body } = await world.graphql('{ wallet(handle: "nobodyatall") { handle } }');
    expect(body.errors[0].extensions).toEqual({ code: "SOCIAL_NOT_FOUND" });
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

describe("walletsById(socialIds)", () => {
  it("returns wallets in the requested order, with the id in the error of each that fails", async () => {
    const query = "query ($ids: [String!]!) { walletsById(socialIds: $ids) { socialId handle } }";
    const { id } = world.account("creator");
    const ids = ["x", id, "0", id];
    const creator = { socialId: id, handle: "creator" };
    for (let i = 0; i < 3; i++) {
      const { body } = await world.graphql(query, { ids });
      expect(body.data.walletsById).toEqual([null, creator, null, creator]);
      const named = body.errors.map(({ path, extensions }: any) => [path.join("."), extensions]);
      expect(Object.fromEntries(named)).toEqual({
        "walletsById.0": { code: "INVALID_SOCIAL_ID", socialId: "x" },
        "walletsById.2": { code: "INVALID_SOCIAL_ID", socialId: "0" },
      });
    }
  });
});

describe("upstream calls", () => {
  it("of 100 known ids are 4 to the chain, for one request of the rate limit", async () => {
    const ids = artists(100).map((handle) => world.account(handle).id);
    const query =
      "query ($ids: [String!]!) { walletsById(socialIds: $ids) { socialId balance { vault } } }";
    const caller = { "x-forwarded-for": "192.0.2.77" };
    const left = ({ headers }: { headers: Headers }) =>
      Number(/r=(\d+)/.exec(headers.get("ratelimit")!)![1]);
    const before = left(await world.graphql("{ __typename }", {}, caller));
    world.forgetCalls();
    const { body, headers } = await world.graphql(query, { ids }, caller);
    expect(body.data.walletsById.map(({ socialId }: any) => socialId)).toEqual(ids);
    expect(upstreamCalls()).toEqual({ social: 0, chain: 4 });
    expect(before - left({ headers })).toBe(1);
  });

  it("of 100 aliased wallets with balances are 1 to the network and 4 to the chain", async () => {
    await world.lookup("creator"); // reads and caches the rent-exempt minimum
    world.forgetCalls();
    const { body } = await world.graphql(aliased(artists(100), "socialId balance { vault pda }"));
    expect(body.errors).toBeUndefined();
    expect(body.data.w99.socialId).toBe(world.account("artist100").id);
    expect(upstreamCalls()).toEqual({ social: 1, chain: 4 });
    expect(world.chainCalls()).toHaveLength(4);
  });

  it("to the chain are none for wallets without a requested balance", async () => {
    world.forgetCalls();
    await world.graphql(aliased(artists(20), "handle address socialId"));
    expect(upstreamCalls()).toEqual({ social: 1, chain: 0 });
    expect(world.chainCalls()).toEqual([]);
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

  it("reads the chain for the wallet only if its balance is selected", async () => {
    const { id } = world.account("newcomer");
    const chainCallsFor = async (fields: string) => {
      world.forgetCalls();
      const { body } = await world.graphql(
        `mutation { collect(socialId: "${id}") { error ${fields} } }`,
      );
      expect(body.data.collect.error).toBe("NOTHING_TO_COLLECT");
      return upstreamCalls();
    };
    const { chain } = await chainCallsFor("");
    expect(await chainCallsFor("wallet { id socialId address }")).toEqual({ social: 0, chain });
    expect(await chainCallsFor("wallet { handle }")).toEqual({ social: 1, chain });
    expect(await chainCallsFor("wallet { balance { total } }")).toEqual({
      social: 0,
      chain: chain + 1,
    });
  });

  it("collects several accounts in one operation, and a failure does not affect the others", async () => {
    const { body } = await world.graphql(
      `mutation { a: collect(socialId: "${world.account("artist001").id}") { success } b: collect(socialId: "x") { success } }`,
    );
    expect(body.data).toEqual({ a: { success: true }, b: null });
    expect(body.errors[0]).toMatchObject({
      path: ["b"],
      extensions: { code: "INVALID_SOCIAL_ID", moved: "no" },
    });
  });

  it("fails with COLLECT_FAILED when the chain cannot be read", async () => {
    world.sandbox.rpc.faults.add({ then: "reset" });
    const { body } = await collect(world.account("artist002").id);
    expect(body.data).toEqual({ collect: null });
    expect(body.errors[0]).toMatchObject({
      path: ["collect"],
      extensions: { code: "COLLECT_FAILED", moved: "no", retryAfterSeconds: 60 },
    });
  });
});

describe("the endpoint", () => {
  it("answers a malformed or invalid request with 400 and GraphQL errors", async () => {
    const send = (body: string) =>
      world.request("/graphql", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/graphql-response+json",
        },
        body,
      });
    for (const body of [
      "",
      "{",
      "[]",
      "{}",
      '{"query":1}',
      '{"query":"{ nothing }"}',
      '{"query":"{"}',
    ]) {
      const answer = await send(body);
      expect([body, answer.status, answer.body.errors?.length > 0]).toEqual([body, 400, true]);
      for (const { extensions } of answer.body.errors) expect(extensions.moved).toBe("no");
    }
  });

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
    const missing = await world.graphql(
      "query ($handle: String!) { wallet(handle: $handle) { address } }",
    );
    expect(missing.body.errors[0].extensions.code).toBe("BAD_REQUEST");
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

  it("runs no mutation over GET", async () => {
    const query = encodeURIComponent('mutation { collect(socialId: "1") { success } }');
    const { status } = await world.request(`/graphql?query=${query}`, {
      headers: { accept: "application/json" },
    });
    expect(status).toBe(405);
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
