import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { from } from "../support/client.ts";
import { startWorld, type World } from "../support/world.ts";

/** Four calls each. */
const WALLETS = 100;
const ids = Array.from({ length: WALLETS }, (_, i) => String(10_000 + i));

describe("balances beyond the share of a block", () => {
  let world: World;
  beforeEach(async () => {
    // Two calls a second, of which a block may make eight at once.
    world = await startWorld({ RPC_CALLS_PER_SECOND: "4" });
  });
  afterEach(() => world.close());

  const readMany = (address: string) =>
    world.graphql(
      "query ($ids: [String!]!) { walletsById(socialIds: $ids) { address balance { vault } } }",
      { ids },
      from(address),
    );

  it("are SERVICE_BUSY, with the same seconds in text and number, and all else is answered", async () => {
    let answer;
    do answer = await readMany("192.0.2.1");
    while (!answer.body.errors);
    expect(answer.status).toBe(200);
    const wallets = answer.body.data.walletsById as { address: string; balance: object | null }[];
    expect(wallets.every(({ address }) => typeof address === "string")).toBe(true);
    const { message, extensions } = answer.body.errors[0];
    expect(extensions).toMatchObject({ code: "SERVICE_BUSY", scope: "CALLER" });
    expect(message).toBe(
      `You have used your share of the service's calls to the chain for now. Try again in ${extensions.retryAfterSeconds} seconds.`,
    );
    expect((await world.lookup("creator", from("198.51.100.1"))).status).toBe(200);
    const { body: metrics } = await world.request("/metrics");
    expect(metrics).toMatch(
      /tributary_budget_refusals_total\{budget="chain_calls",scope="CALLER"\} [1-9]/,
    );
  });
});
