import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ SOCIAL_CACHE_SECONDS: "0", RPC_TIMEOUT_MS: "300" });
});
afterEach(() => {
  world.sandbox.social.faults.clear();
  world.sandbox.rpc.faults.clear();
});
afterAll(() => world.close());

const artists = (count: number) =>
  Array.from({ length: count }, (_, i) => `artist${String(i + 1).padStart(3, "0")}`);
const aliased = (handles: readonly string[], fields: string) =>
  `{ ${handles.map((handle, i) => `w${i}: wallet(handle: "${handle}") { ${fields} }`).join("\n")} }`;
/** The calls made upstream: those to the network, and those for accounts' balances. */
const upstreamCalls = () => ({
  social: world.sandbox.social.calls.length,
  chain: world.chainCalls().filter((method) => method === "getMultipleAccounts").length,
});

describe("wallet(handle)", () => {
  it("gives what REST gives, exact lamports, and what the owner would get", async () => {
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
  ])("fails for %j with %s at its path, and the status stays 200", async (handle, code) => {
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

  it("lets its neighbours answer when it fails", async () => {
    const { body } = await world.graphql(aliased(["creator", "nobodyatall", "no good", "dusty"], "handle"));
    expect(body.data).toEqual({ w0: { handle: "creator" }, w1: null, w2: null, w3: { handle: "dusty" } });
    expect(body.errors.map(({ path, extensions }: any) => [path, extensions.code])).toEqual(
      expect.arrayContaining([
        [["w1"], "SOCIAL_NOT_FOUND"],
        [["w2"], "INVALID_HANDLE"],
      ]),
    );
  });

  it("tells when to come back, without a status of its own, when the network refuses", async () => {
    world.sandbox.social.faults.add({ then: { status: 429, body: "" } });
    const { status, headers, body } = await world.graphql('{ wallet(handle: "creator") { address } }');
    expect([status, headers.get("retry-after")]).toEqual([200, null]);
    expect(body.errors[0].extensions).toEqual({ code: "SOCIAL_RATE_LIMITED", retryAfterSeconds: 60 });
  });

  it("keeps what is known of a wallet when its balance cannot be read", async () => {
    world.sandbox.rpc.faults.add({ then: "reset" });
    const { body } = await world.graphql('{ wallet(handle: "creator") { handle balance { vault } } }');
    expect(body.data).toEqual({ wallet: { handle: "creator", balance: null } });
    expect(body.errors[0]).toMatchObject({
      path: ["wallet", "balance"],
      extensions: { code: "LOOKUP_FAILED" },
    });
  });
});

describe("walletById(socialId)", () => {
  it("reads nothing for the address, the network for the handle, the chain for the balance", async () => {
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
    expect(await ask("balance { pda }")).toEqual([{ balance: { pda: "2.1000" } }, { social: 0, chain: 1 }]);
  });

  it("has no handle for an id that no account has", async () => {
    const { body } = await world.graphql('{ walletById(socialId: "99") { handle address } }');
    expect(body.data.walletById).toEqual({ handle: null, address: expect.any(String) });
    expect(body.errors[0]).toMatchObject({
      path: ["walletById", "handle"],
      extensions: { code: "SOCIAL_NOT_FOUND" },
    });
  });

  it("refuses what is no id, and takes one with leading zeros for the account it means", async () => {
    const { body } = await world.graphql('{ a: walletById(socialId: "x") { address } }');
    expect(body.errors[0].extensions.code).toBe("INVALID_SOCIAL_ID");
    const { body: same } = await world.graphql(
      '{ a: walletById(socialId: "0042") { address socialId } b: walletById(socialId: "42") { address socialId } }',
    );
    expect(same.data.a).toEqual(same.data.b);
  });
});

describe("wallets(handles)", () => {
  it("gives them in their order, with an error at the place of each that fails", async () => {
    const { body } = await world.graphql(
      '{ wallets(handles: ["dusty", "nobodyatall", "creator", "a b"]) { handle } }',
    );
    expect(body.data.wallets).toEqual([{ handle: "dusty" }, null, { handle: "creator" }, null]);
    expect(body.errors.map(({ path, extensions }: any) => [path, extensions.code]).sort()).toEqual([
      [["wallets", 1], "SOCIAL_NOT_FOUND"],
      [["wallets", 3], "INVALID_HANDLE"],
    ]);
  });
});

describe("upstream calls", () => {
  it("of 100 aliased wallets with balances are 1 to the network and 2 to the chain", async () => {
    await world.lookup("creator"); // so that the rent-exempt minimum has been read
    world.forgetCalls();
    const { body } = await world.graphql(aliased(artists(100), "socialId balance { vault pda }"));
    expect(body.errors).toBeUndefined();
    expect(body.data.w99.socialId).toBe(world.account("artist100").id);
    expect(upstreamCalls()).toEqual({ social: 1, chain: 2 });
    expect(world.chainCalls()).toHaveLength(2);
  });

  it("of 200 wallets in one list are 2 to the network and 4 to the chain", async () => {
    world.forgetCalls();
    const { body } = await world.graphql(
      "query ($handles: [String!]!) { wallets(handles: $handles) { balance { pda } } }",
      {
        handles: artists(200),
      },
    );
    expect(body.errors).toBeUndefined();
    expect(upstreamCalls()).toEqual({ social: 2, chain: 4 });
  });

  it("are one for equal handles, in whatever case", async () => {
    world.forgetCalls();
    await world.graphql(aliased(["creator", "Creator", "CREATOR"], "handle balance { total }"));
    expect(upstreamCalls()).toEqual({ social: 1, chain: 1 });
    expect(world.sandbox.social.calls[0]!.names).toEqual(["creator"]);
  });

  it("to the chain are none for wallets whose balance is not asked for", async () => {
    world.forgetCalls();
    await world.graphql(aliased(artists(20), "handle address socialId"));
    expect(upstreamCalls()).toEqual({ social: 1, chain: 0 });
    expect(world.chainCalls()).toEqual([]);
  });
});

describe("collect(socialId)", () => {
  const FIELDS =
    "success collected collectedLamports newBalance newBalanceLamports txSignature error message";
  const collect = (id: string) => world.graphql(`mutation { collect(socialId: "${id}") { ${FIELDS} } }`);

  it("moves fees, and tells an empty vault as data", async () => {
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

  it("collects several accounts in one operation; one that fails does not fail the others", async () => {
    const { body } = await world.graphql(
      `mutation { a: collect(socialId: "${world.account("artist001").id}") { success } b: collect(socialId: "x") { success } }`,
    );
    expect(body.data).toEqual({ a: { success: true }, b: null });
    expect(body.errors[0]).toMatchObject({ path: ["b"], extensions: { code: "INVALID_SOCIAL_ID" } });
  });

  it("fails with COLLECT_FAILED when the chain cannot be read", async () => {
    world.sandbox.rpc.faults.add({ then: "reset" });
    const { body } = await collect(world.account("artist002").id);
    expect(body.data).toEqual({ collect: null });
    expect(body.errors[0]).toMatchObject({ path: ["collect"], extensions: { code: "COLLECT_FAILED" } });
  });
});

describe("the endpoint", () => {
  it("is GraphiQL in a browser, complete: it loads nothing from elsewhere", async () => {
    const { status, headers, body } = await world.request("/graphql", { headers: { accept: "text/html" } });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch("text/html");
    expect(body).toContain("OneWallet");
    expect(body).not.toMatch(/<(script|link|img)[^>]+(src|href)="?https?:/i);
  });

  it("answers what cannot be read or is not valid with 400 and GraphQL errors", async () => {
    const send = (body: string) =>
      world.request("/graphql", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/graphql-response+json" },
        body,
      });
    for (const body of ["", "{", "[]", "{}", '{"query":1}', '{"query":"{ nothing }"}', '{"query":"{"}']) {
      const answer = await send(body);
      expect([body, answer.status, answer.body.errors?.length > 0]).toEqual([body, 400, true]);
    }
  });

  it("runs no mutation by GET", async () => {
    const query = encodeURIComponent('mutation { collect(socialId: "1") { success } }');
    const { status } = await world.request(`/graphql?query=${query}`, {
      headers: { accept: "application/json" },
    });
    expect(status).toBe(405);
  });

  it("never shows what went wrong inside", async () => {
    world.sandbox.rpc.faults.add({ then: { status: 500, body: "internal detail of the provider" } });
    const { body } = await world.graphql('{ wallet(handle: "creator") { balance { vault } } }');
    expect(JSON.stringify(body)).not.toMatch(
      /internal detail|127\.0\.0\.1|\.ts|node_modules|stack|getMultiple/,
    );
  });
});
