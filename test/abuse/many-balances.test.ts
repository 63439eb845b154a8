import { expect } from "vitest";
import { from } from "../support/client.ts";
import { withWorld, world } from "../support/fixtures.ts";

/** Four calls each time. */
const ids = Array.from({ length: 100 }, (_, i) => String(10_000 + i));
const QUERY = "query ($ids: [String!]!) { walletsById(socialIds: $ids) { balance { vault } } }";

// Two calls a second, and 15 for a block.
const it = withWorld({ RPC_CALLS_PER_SECOND: "4" });

it("a cached operation with invalid variables takes nothing of its block's calls to the chain", async () => {
  const read = (some: readonly (string | null)[]) =>
    world.graphql(QUERY, { ids: some }, from("192.0.2.1"));
  expect((await read(["1"])).status).toBe(200);
  for (let i = 0; i < 4; i++) {
    const { body, headers } = await read([...ids.slice(1), null]);
    expect(body.errors[0].message).toMatch(/^Variable "\$ids" got invalid value null/);
    expect(headers.get("ratelimit")).toContain(`r=${18 - i};`);
  }
  expect((await read(["2"])).body.errors).toBeUndefined();
});
