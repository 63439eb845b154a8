import { readFileSync } from "node:fs";
import { GraphQLClient } from "graphql-request";
import { buildClientSchema, getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest";
import { CollectDocument, WalletDocument } from "../../examples/clients/graphql.ts";
import { graphqlTypes } from "../../scripts/print-client-types.ts";
import { startWorld, type World } from "../support/world.ts";

const EXAMPLES = new URL("../../examples/clients/", import.meta.url).pathname;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

describe("GraphQL Code Generator", () => {
  it("generates the examples' module from the service's schema (`npm run schema` updates it)", async () => {
    const { data } = (await world.graphql(getIntrospectionQuery())).body;
    const generated = await graphqlTypes(buildClientSchema(data));
    expect(generated).toBe(readFileSync(`${EXAMPLES}graphql.ts`, "utf8"));
  });

  it("generates operations whose results have their types", async () => {
    const client = new GraphQLClient(`${world.url}/graphql`);
    const { wallet } = await client.request(WalletDocument, { handle: "artist001" });
    if (!wallet) expect.fail("no wallet");
    expectTypeOf(wallet.id).toEqualTypeOf<string>();
    expectTypeOf(wallet.balance).toEqualTypeOf<{ vault: string } | null>();
    const { socialId, balance } = wallet;
    const { collect } = await client.request(CollectDocument, { socialId });
    expectTypeOf(collect?.newBalance).toEqualTypeOf<string | null | undefined>();
    expect(collect).toMatchObject({ success: true, collected: balance?.vault });
    expect(collect?.wallet).toEqual({ id: wallet.id, balance: { vault: "0.0000" } });
  });
});
