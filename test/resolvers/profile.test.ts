import { describe, expect } from "vitest";
import { withNewWorld, world } from "../support/fixtures.ts";

const it = withNewWorld();

const PROFILE = "profile { name verified followers pictureUrl }";
const CREATOR = {
  ...{ name: "The Creator", verified: true, followers: 1_284_000 },
  pictureUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/pictures\/creator\.svg$/),
};
const socialCalls = () => world.sandbox.social.calls.map(({ names }) => names);

describe("a wallet's profile", () => {
  it("comes from the call that finds the handle, and from the cache with it", async () => {
    for (let i = 0; i < 3; i++) {
      const { body } = await world.graphql(
        `{ wallet(handle: "creator") { handle ${PROFILE} balance { total } } }`,
      );
      expect(body).toEqual({
        data: { wallet: { handle: "creator", profile: CREATOR, balance: { total: "8.3000" } } },
      });
    }
    expect(socialCalls()).toEqual([["creator"]]);
  });

  it("of an id is read only if it or the handle is selected, both in one call", async () => {
    const { id, address } = world.account("creator");
    const byId = (fields: string) =>
      world.graphql(`{ walletById(socialId: "${id}") { ${fields} } }`);
    expect((await byId("address balance { total }")).body.data.walletById.address).toBe(address);
    expect(socialCalls()).toEqual([]);
    const { body } = await byId(`handle ${PROFILE}`);
    expect(body).toEqual({ data: { walletById: { handle: "creator", profile: CREATOR } } });
    expect(socialCalls()).toEqual([[id]]);
  });

  it("fails alone when the network fails: the address needs none", async () => {
    world.sandbox.social.faults.add({ then: "reset" });
    const { id, address } = world.account("creator");
    const { body } = await world.graphql(
      `{ walletById(socialId: "${id}") { address ${PROFILE} } }`,
    );
    expect(body.data).toEqual({ walletById: { address, profile: null } });
    expect(body.errors).toMatchObject([
      { path: ["walletById", "profile"], extensions: { code: "SOCIAL_API_UNAVAILABLE" } },
    ]);
  });
});
