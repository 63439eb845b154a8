import createClient from "openapi-fetch";
import { describe, expect, expectTypeOf } from "vitest";
import type { components, paths } from "../../examples/clients/openapi.ts";
import { recordFetch } from "../support/recorded-fetch.ts";
import { it, world } from "../support/fixtures.ts";

type Schemas = components["schemas"];

let clients = 0;
/** Creates a client with an address of its own, in the rate limit. */
const openClient = () =>
  createClient<paths>({ baseUrl: world.url, fetch: recordFetch(`192.0.2.${++clients}`).fetch });

describe("openapi-fetch with the types of openapi-typescript", () => {
  it("reads a wallet", async () => {
    const query = { handle: "creator" };
    const { data, error } = await openClient().GET("/wallet/lookup", { params: { query } });
    expectTypeOf(data).toEqualTypeOf<Schemas["Wallet"] | undefined>();
    expect(error).toBeUndefined();
    expect(data?.address).toBe(world.account("creator").address);
    expect(data?.balance).toMatchObject({
      vault: "3.1000",
      pda: "5.2000",
      total: "8.3000",
      withdrawable: "8.1340",
    });
  });

  it("gets a refusal with its code and seconds", async () => {
    const client = openClient();
    const query = { handle: "newcomer" };
    const lookUp = () => client.GET("/wallet/lookup", { params: { query } });
    for (let i = 0; i < 20; i++) await lookUp();
    const { error, response } = await lookUp();
    expect([response.status, error?.error]).toEqual([429, "RATE_LIMITED"]);
    expect(response.headers.get("retry-after")).toMatch(/^[1-9]\d?$/);
  });

  it("collects, and tells an empty vault from an error by its code", async () => {
    const client = openClient();
    const { socialId, balance } = (await world.lookup("artist001")).body;
    const first = await client.POST("/collect", { body: { socialId } });
    expectTypeOf(first.data).toEqualTypeOf<Schemas["CollectResult"] | undefined>();
    expect(first.data).toMatchObject({ success: true, collected: balance.vault });

    const { error } = await client.POST("/collect", { body: { socialId } });
    expectTypeOf(error).toEqualTypeOf<
      Schemas["NothingToCollect"] | Schemas["CollectError"] | Schemas["ErrorBody"] | undefined
    >();
    if (error?.error !== "NOTHING_TO_COLLECT") expect.fail(error?.error);
    expectTypeOf(error.success).toEqualTypeOf<false>();
    expect(error.collected).toBe("0.0000");
  });
});
