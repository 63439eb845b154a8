import { describe, expect } from "vitest";
import { it, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const mint = () => world.account("launcher").coins[0]!.mint;
const codeOf = async (answer: ReturnType<World["request"]>) => {
  const { status, body } = await answer;
  return [status, body.error];
};

describe("coins in a query", () => {
  it.each(["mint", "mints", "mint[]", "mint%5B%5D"])("are named by %s", async (name) => {
    const { body } = await world.request(`/wallet/lookup?handle=launcher&${name}=${mint()}`);
    expect(body.coins).toEqual([expect.objectContaining({ mint: mint() })]);
  });

  it.each(["mint[0]", "mintAddress", "Mint"])(
    "are not named by %s, which is refused",
    async (name) => {
      const path = `/wallet/lookup?handle=launcher&${name}=${mint()}`;
      expect(await codeOf(world.request(path))).toEqual([400, "INVALID_MINT"]);
    },
  );
});

describe("a body", () => {
  const collect = (more: object) =>
    world.post("/collect", { socialId: world.account("newcomer").id, ...more });

  it.each([
    ["mintAddress", "INVALID_MINT"],
    ["mint[]", "INVALID_MINT"],
    ["minimumSol", "INVALID_MINIMUM"],
    ["Minimums", "INVALID_MINIMUM"],
  ])("with the name %s is refused", async (name, code) => {
    expect(await codeOf(collect({ [name]: mint() }))).toEqual([400, code]);
  });

  it.each(["utf-16", '"UTF-16LE"'])("in charset=%s is refused", async (charset) => {
    const headers = { "content-type": `application/json; charset=${charset}` };
    const post = (path: string, body: object) =>
      world.request(path, { method: "POST", headers, body: JSON.stringify(body) });
    const { status, body } = await post("/collect", { socialId: "1" });
    expect([status, body]).toMatchObject([
      400,
      { error: "INVALID_SOCIAL_ID", message: expect.stringContaining("in UTF-8") },
    ]);
    expect((await post("/graphql", { query: "{ __typename }" })).status).toBe(415);
  });

  it.each(["us-ascii", "UTF8"])("in charset=%s is read", async (charset) => {
    const headers = { "content-type": `application/json; charset=${charset}` };
    const body = JSON.stringify({ query: "{ __typename }" });
    expect((await world.request("/graphql", { method: "POST", headers, body })).status).toBe(200);
  });
});

describe("a path with a slash too many", () => {
  it.each([
    ["/wallet/lookup/?handle=creator", "/wallet/lookup"],
    ["//collect", "/collect"],
    ["/wallet//lookup", "/wallet/lookup"],
  ])("%s gets 404, which names %s", async (path, expected) => {
    const { status, body } = await world.request(path);
    expect([status, body]).toMatchObject([
      404,
      { error: "NOT_FOUND", message: expect.stringContaining(`Use ${expected}.`) },
    ]);
  });

  it("is not named if there is nothing without it either", async () => {
    expect((await world.request("/nowhere/")).body.message).not.toContain("slash");
  });
});
