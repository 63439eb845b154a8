import { describe, expect } from "vitest";
import { newMint } from "../support/new-mint.ts";
import { isAccountsRead, isLook, NEVER_MS } from "../support/sandbox.ts";
import { withNewWorld, world } from "../support/fixtures.ts";
import { BOTH_ENDPOINTS } from "../support/world.ts";

const it = withNewWorld({}, { waits: { resendMs: NEVER_MS } });

const callsTo = (method: string) => world.chainCalls().filter((called) => called === method).length;

describe("a query that costs one request", () => {
  const times = <T>(count: number, item: T) => Array<T>(count).fill(item);

  it.each([
    ["96 wallets, one of each 32 with a coin", times(3, [...times(31, 0), 1]).flat()],
    ["10 wallets with seven coins", times(10, 7)],
    ["two wallets with ten coins between small ones", [10, ...times(20, 0), 9, 10, 9, 0]],
    ["four wallets with as many coins as one may have", times(4, 19)],
  ])("makes at most five calls for balances: %s", async (_, wallets) => {
    const fields = wallets.map((coins, i) => {
      const mints = Array.from({ length: coins }, newMint);
      const [some, others] = [mints.slice(0, 10), mints.slice(10)].map((list) =>
        JSON.stringify(list),
      );
      return `w${i}: walletById(socialId: "${i + 1}") { balance(mints: ${some}) { vault } coins(mints: ${others}) { mint } }`;
    });
    world.forgetCalls();
    const { status, body } = await world.graphql(
      `{ ${fields.join(" ")} rateLimit { cost } }`,
      {},
      { "x-forwarded-for": "192.0.2.1" },
    );
    expect([status, body.errors, body.data.rateLimit]).toEqual([200, undefined, { cost: 1 }]);
    expect(world.chainCalls().length).toBeLessThanOrEqual(5);
  });
});

describe("with two chain endpoints", () => {
  const it = withNewWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
  it("a lookup still makes one call, to the preferred one", async () => {
    await world.lookup("creator");
    world.forgetCalls();
    world.secondRpc.calls.length = 0;
    expect((await world.lookup("creator")).status).toBe(200);
    // The silent endpoint may be asked for its clock in the background.
    const others = world.secondRpc.calls.filter(isAccountsRead);
    expect([world.chainCalls(), others]).toEqual([["getMultipleAccounts"], []]);
  });
});

describe("a lone collect", () => {
  const ONCE = [
    "getLatestBlockhash",
    "getMultipleAccounts",
    "getRecentPrioritizationFees",
    "sendTransaction",
    "simulateTransaction",
  ];
  /** Without the looks at the outcome and, unless the transaction lands at once, the height. */
  const callsOfCollect = () => {
    expect(callsTo("getEpochInfo")).toBeLessThanOrEqual(1);
    return world
      .chainCalls()
      .filter((method) => !isLook({ method }) && method !== "getEpochInfo")
      .toSorted();
  };

  it("makes one call of each method, besides looks at the outcome", async () => {
    await world.lookup("artist001");
    world.forgetCalls();
    expect((await world.collect(world.account("creator").id)).status).toBe(200);
    expect(callsOfCollect()).toEqual(ONCE);
  });

  it("of a coin whose fees are shared makes no more", async () => {
    await world.lookup("artist001");
    const { id, coins } = world.account("band");
    await world.collect(id);
    world.forgetCalls();
    expect((await world.collect(id, {}, [coins[0]!.mint])).body).toMatchObject({
      collected: "0.6000",
    });
    expect(callsOfCollect()).toEqual(ONCE);
  });
});
