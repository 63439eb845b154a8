import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startBareNetwork } from "../support/doubles/bare-network.ts";
import { newMint } from "../support/new-mint.ts";
import { atOnce, from } from "../support/client.ts";
import { inject } from "../support/inject.ts";
import { hold, isAccountsRead, isLook, isMethod, isOwnCall, NEVER_MS } from "../support/sandbox.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../support/world.ts";

let world: World;
/** 1,000 new handles at once are more than the default budget holds. */
const UNLIMITED_READS = { SOCIAL_READS_PER_HOUR: "0" };
beforeEach(async () => {
  world = await startWorld(UNLIMITED_READS, { waits: { resendMs: NEVER_MS } });
});
afterEach(() => world.close());

const callsTo = (method: string) => world.chainCalls().filter((called) => called === method).length;

/**
 * A REST lookup passed directly to the gateway, so that concurrent lookups arrive in the same turn.
 */
const lookup = async (handle: string, i: number) => {
  const path = `/wallet/lookup?handle=${handle}`;
  const { status } = await inject(world.gateway.api, path, {
    headers: from(`10.1.${i >> 8}.${i & 255}`),
  });
  return status;
};

describe("1,000 concurrent lookups over REST", () => {
  it("of unknown handles make at most 14 calls to the network", async () => {
    const statuses = await atOnce(1_000, (i) => lookup(`nobody${i}`, i));
    expect(new Set(statuses)).toEqual(new Set([404]));
    expect(world.sandbox.social.calls.length).toBeLessThanOrEqual(14);
  });

  // 1,000 wallets fill 32 calls of 32; after each of at most 14 calls to the network a call may
  // leave half full.
  it("of different accounts make at most 45 calls for their balances", async () => {
    // The sandbox's network has fewer than 1,000 accounts.
    const accounts = Array.from({ length: 1_000 }, (_, i) => ({
      id: String(10 ** 9 + i),
      username: `fan${i}`,
    }));
    const network = await startBareNetwork(accounts, world.sandbox.env.SOCIAL_API_TOKEN);
    await world.close();
    world = await startWorld({
      ...UNLIMITED_READS,
      SOCIAL_API_URL: network.url,
      SOCIAL_API_TOKEN: world.sandbox.env.SOCIAL_API_TOKEN,
    });
    world.forgetCalls();
    const statuses = await atOnce(1_000, (i) => lookup(`fan${i}`, i));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(callsTo("getMultipleAccounts")).toBeLessThanOrEqual(45);
    await network.close();
  });

  it("of one handle in different cases make one call to the network", async () => {
    const statuses = await atOnce(1_000, (i) => lookup(i % 2 ? "creator" : "CREATOR", i));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(world.sandbox.social.calls).toHaveLength(1);
  });
});

describe("a cached operation", () => {
  const parsed = () =>
    world.logLines.filter((line) => line.includes("parsed and validated a document")).length;
  const query = (text: string, i: number) =>
    world.graphql(text, { h: "creator" }, { "x-forwarded-for": `192.0.2.${i}` });

  it("with a balance makes one call to the chain and none to the network, and is parsed once", async () => {
    const text = "query W($h: String!) { wallet(handle: $h) { address balance { vault pda } } }";
    await query(text, 1);
    expect([parsed(), world.sandbox.social.calls.length]).toEqual([1, 1]);
    for (let i = 1; i <= 5; i++) {
      world.forgetCalls();
      expect((await query(text, i)).body.data.wallet.balance.vault).toBe("3.1000");
      expect([callsTo("getMultipleAccounts"), world.chainCalls().length]).toEqual([1, 1]);
      expect([parsed(), world.sandbox.social.calls.length]).toEqual([1, 0]);
    }
  });
});

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
  it("a collect makes nine calls if its first look comes when its transaction is final", async () => {
    await world.close();
    const env = { SOLANA_RPC_URL: BOTH_ENDPOINTS };
    world = await startWorld(env, { waits: { resendMs: NEVER_MS, rereadMs: NEVER_MS } });
    const endpoints = [world.sandbox.rpc, world.secondRpc];
    await world.gateway.start();
    // The first collect also reads a block's height.
    await world.collect(world.account("artist001").id);
    const before = world.sandbox.landedCollects().length;
    for (const { calls } of endpoints) calls.length = 0;
    const releases = endpoints.map((endpoint) => hold(endpoint, isMethod("getTransaction")));
    const collect = world.collect(world.account("creator").id);
    const { chain, landedCollects } = world.sandbox;
    await expect
      .poll(() => (landedCollects()[before]?.slot ?? Infinity) <= chain.slot("finalized"))
      .toBe(true);
    for (const release of releases) release();
    expect((await collect).status).toBe(200);
    const calls = endpoints.flatMap((endpoint) => endpoint.calls.filter(isOwnCall));
    expect(calls.map(({ method }) => method).toSorted()).toEqual([
      "getLatestBlockhash",
      "getMultipleAccounts",
      "getRecentPrioritizationFees",
      "getTransaction",
      "getTransaction",
      "isBlockhashValid",
      "sendTransaction",
      "sendTransaction",
      "simulateTransaction",
    ]);
  });

  it("a lookup still makes one call, to the preferred one", async () => {
    await world.close();
    world = await startWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
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

describe("50 concurrent collects", () => {
  it("share one confirmation poller", async () => {
    const accounts = world.sandbox.accounts
      .filter(({ handle }) => /^artist0[0-5][1-9]$/.test(handle))
      .slice(0, 50);
    const { rpc, chain, landedCollects } = world.sandbox;
    const isStatus = isMethod("getSignatureStatuses");
    const lift = rpc.faults.add({ when: isLook, then: "reset" });
    const answers = atOnce(50, (i) => world.collect(accounts[i]!.id));
    const areCollected = () =>
      accounts.every(
        ({ creatorVault }) => chain.balance(creatorVault) <= chain.rentExemptMinimum(0),
      );
    await expect.poll(areCollected).toBe(true);
    await expect.poll(() => chain.slot("finalized") >= landedCollects().at(-1)!.slot).toBe(true);

    // All transactions have landed: only the poller calls the node now, with all signatures in each
    // call.
    await expect
      .poll(() => (rpc.calls.filter(isStatus).at(-1)?.params[0] as string[] | undefined)?.length)
      .toBe(landedCollects().length);
    world.forgetCalls();
    await expect.poll(() => callsTo("getSignatureStatuses")).toBeGreaterThanOrEqual(3);
    for (const { params } of rpc.calls.filter(isStatus).slice(1))
      expect(params[0]).toHaveLength(landedCollects().length);

    world.forgetCalls();
    lift();
    expect((await answers).map(({ status }) => status)).toEqual(accounts.map(() => 200));
    expect(callsTo("getSignatureStatuses")).toBe(1);
  });
});

describe("after a collect", () => {
  it("no lookup reads an older state", async () => {
    const { body } = await world.collect(world.account("creator").id);
    const { slot } = world.sandbox.chain.landed(body.txSignature)!;
    world.forgetCalls();
    expect((await world.lookup("creator")).body.balance.pda).toBe("8.3000");
    const [read] = world.sandbox.rpc.calls.filter(({ method }) => method === "getMultipleAccounts");
    expect(read!.params[1]).toMatchObject({ minContextSlot: slot });
  });
});
