import { describe, expect } from "vitest";
import { from } from "../support/client.ts";
import { withNewWorld, world } from "../support/fixtures.ts";

/** Four calls each. */
const WALLETS = 100;
const ids = Array.from({ length: WALLETS }, (_, i) => String(10_000 + i));

// Two calls a second, and 15 for a block.
const it = withNewWorld({ RPC_CALLS_PER_SECOND: "4" });

describe("balances beyond the share of a block", () => {
  const readMany = (address: string) =>
    world.graphql(
      "query ($ids: [String!]!) { walletsById(socialIds: $ids) { address balance { vault } } }",
      { ids },
      from(address),
    );

  it("cost what is read: nothing for a cached operation with invalid variables", async () => {
    const query = "query ($ids: [String!]!) { walletsById(socialIds: $ids) { balance { vault } } }";
    expect((await world.graphql(query, { ids: ["1"] }, from("192.0.2.1"))).status).toBe(200);
    for (let i = 0; i < 4; i++) {
      const invalid = await world.graphql(
        query,
        { ids: [...ids.slice(1), null] },
        from("192.0.2.1"),
      );
      expect(invalid.body.errors[0].message).toMatch(/^Variable "\$ids" got invalid value null/);
      expect(invalid.headers.get("ratelimit")).toContain(`r=${18 - i};`);
    }
    expect((await readMany("192.0.2.1")).body.errors).toBeUndefined();
  });

  it("are SERVICE_BUSY, with the same seconds in text and number, and all else is answered", async () => {
    let answer;
    do answer = await readMany("192.0.2.1");
    while (!answer.body.errors);
    expect(answer.status).toBe(200);
    const wallets = answer.body.data.walletsById as { address: string; balance: object | null }[];
    expect(wallets.every(({ address }) => typeof address === "string")).toBe(true);
    const { message, extensions } = answer.body.errors[0];
    expect(extensions).toMatchObject({ code: "SERVICE_BUSY", scope: "CALLER" });
    expect(message).toContain(
      `You have used your share of the service's calls to the chain for now. Try again in ${extensions.retryAfterSeconds} second`,
    );
    expect((await world.lookup("creator", from("198.51.100.1"))).status).toBe(200);
    const { body: metrics } = await world.request("/metrics");
    expect(metrics).toMatch(
      /tributary_budget_refusals_total\{budget="chain_calls",scope="CALLER"\} [1-9]/,
    );
  });
});
