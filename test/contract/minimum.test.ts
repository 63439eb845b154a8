import { beforeEach, describe, expect } from "vitest";
import { formatExactSol, toLamports } from "../../src/chain/primitives/lamports.ts";
import { toMinimum } from "../../src/contract/minimum.ts";
import { newMint } from "../support/new-mint.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { chain, it, world } from "../support/fixtures.ts";

const SOL = 10n ** 9n;

it.each([
  ["0", 0n],
  ["0.5", 500_000_000n],
  ["0.000000001", 1n],
  ["12", 12n * SOL],
  ["007.10", 7_100_000_000n],
  ["9999999999.999999999", 9_999_999_999_999_999_999n],
])("a minimum of %s SOL is %d lamports", (text, lamports) => {
  expect(toMinimum(text)).toBe(lamports);
});

it.each([
  [0n, "0"],
  [1n, "0.000000001"],
  [300_000_000n, "0.3"],
  [20n * SOL, "20"],
])("%d lamports are %s SOL", (lamports, text) => {
  expect(formatExactSol(toLamports(lamports))).toBe(text);
});

describe("a collect with a minimum", () => {
  /** Each test has an account of its own, with 0.3 SOL in its vault. */
  let id: string;
  let handle: string;
  let tests = 0;
  beforeEach(() => {
    handle = `artist${String(++tests).padStart(3, "0")}`;
    const account = world.account(handle);
    ({ id } = account);
    chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + 300_000_000n);
    world.forgetCalls();
  });

  const collect = (minimum: unknown, mints?: readonly string[], socialId = id) =>
    world.post("/collect", { socialId, mints, minimum });
  const collects = () => world.sandbox.landedCollectsOf(handle);
  const NAME_COINS = "Fees may also wait on coins: name up to 10 by their mints, in `mints`.";
  const tooLittle = (sol: string, isAdvised = true) =>
    `Only ${sol} SOL can be collected, less than \`minimum\`. Try again after more trading.${isAdvised ? ` ${NAME_COINS}` : ""}`;

  it("moves nothing and simulates nothing if the transaction would move less, and says what waits", async () => {
    const { status, body } = await collect("0.300000001");
    expect([status, body]).toEqual([
      400,
      {
        success: false,
        error: "NOTHING_TO_COLLECT",
        message: tooLittle("0.3"),
        collected: "0.0000",
        moved: "no",
        left: [{ mint: null, amount: "0.3000", lamports: "300000000", reason: "BELOW_MINIMUM" }],
        lastCollects: [],
      },
    ]);
    expect(world.chainCalls()).not.toContain("simulateTransaction");
    expect(collects()).toEqual([]);
  });

  it.each(["0.3", "0", null])("collects what reaches it: %s", async (minimum) => {
    const { status, body } = await collect(minimum);
    expect([status, body.collected]).toEqual([200, "0.3000"]);
  });

  it("counts the coins that the request names", async () => {
    const mint = newMint();
    const { address } = world.account(handle);
    world.sandbox.coins.launch({ mint, creator: address, fees: SOL });
    expect((await collect("1.3")).body.message).toBe(tooLittle("0.3"));
    expect((await collect("1.300000001", [mint])).body.message).toBe(tooLittle("1.3", false));
    expect((await collect("1.3", [mint])).body).toMatchObject({ collected: "1.3000" });
  });

  it("counts the account's share of a coin, not that of others", async () => {
    const mint = newMint();
    const shareholders = [
      { address: world.account(handle).address, bps: 6_000 },
      { address: world.account("creator").address, bps: 4_000 },
    ];
    world.sandbox.coins.launch({
      mint,
      creator: shareholders[0]!.address,
      shareholders,
      fees: SOL,
    });
    // One transaction moves the vault or the share.
    const { body } = await collect("0.61", [mint]);
    expect(body.message).toMatch(/^Only 0\.(6|59)\d* SOL can be collected/);
    expect(world.chainCalls()).not.toContain("simulateTransaction");
    expect((await collect("0.59", [mint])).body).toMatchObject({ success: true });
  });

  it("is the same in GraphQL, for one account and for many", async () => {
    const { body } = await world.graphql(
      `mutation ($id: String!, $c: [CollectInput!]!) {
        collect(socialId: $id, minimum: "0.31") { success error message }
        collectMany(collects: $c) { success error message }
      }`,
      { id, c: ["0.31", "x"].map((minimum) => ({ socialId: id, minimum })) },
    );
    const nothing = { success: false, error: "NOTHING_TO_COLLECT", message: tooLittle("0.3") };
    expect(body.data).toEqual({ collect: nothing, collectMany: [nothing, null] });
    expect(body.errors).toMatchObject([
      { path: ["collectMany", 1], extensions: { code: "INVALID_MINIMUM" } },
    ]);
  });

  it("in entries of one account, each gets what is worth it, and the amounts are given once", async () => {
    const { body } = await world.graphql(
      "mutation ($c: [CollectInput!]!) { collectMany(collects: $c) { success collectedLamports } }",
      { c: ["5", "0.3", "0.2"].map((minimum) => ({ socialId: id, minimum })) },
    );
    const results = body.data.collectMany;
    expect(results.slice(1)).toMatchObject([{ success: true }, { success: true }]);
    const sum = results.reduce((total: number, each: any) => total + +each.collectedLamports, 0);
    expect(sum).toBe(300_000_000);
    expect(collects()).toHaveLength(1);
  });

  it("joins a transaction in flight, and gets its result", async () => {
    const release = hold(world.sandbox.rpc, isMethod("sendTransaction"));
    const first = collect(undefined);
    await expect.poll(() => world.chainCalls()).toContain("sendTransaction");
    world.forgetCalls();
    const second = collect("1000");
    // The newest slot before the landing proves that the transaction lands after the second request.
    await expect.poll(() => world.chainCalls()).toContain("getSlot");
    release();
    const [one, two] = [await first, await second];
    expect([one.status, two.body]).toEqual([200, one.body]);
  });

  it("lets a caller without one collect what waits", async () => {
    const release = hold(world.sandbox.rpc, isMethod("getMultipleAccounts"));
    const first = collect("1000");
    await expect.poll(() => world.chainCalls()).toContain("getMultipleAccounts");
    const second = collect(undefined);
    release();
    const answers = await Promise.all([first, second]);
    expect(answers[1].body).toMatchObject({ success: true, collected: "0.3000" });
    expect(collects()).toHaveLength(1);
  });

  it.each([
    ...["", " 1", "-1", "1.", ".5", "0,5", "1e3", "0.0000000001", "12345678901", "1\n", "١"],
    ...[1, ["1"]],
  ])("that is %j is INVALID_MINIMUM, without calls to the chain", async (minimum) => {
    const { status, body } = await collect(minimum);
    expect([status, body]).toEqual([
      400,
      {
        success: false,
        error: "INVALID_MINIMUM",
        moved: "no",
        message: expect.stringMatching(
          /^`minimum` must be a string of SOL with at most 9 digits after the point, such as "0\.5"\. Received ./,
        ),
      },
    ]);
    // The transaction of an earlier test may still be looked for.
    const calls = world.chainCalls().filter((method) => method !== "getEpochInfo");
    expect(calls).toEqual([]);
  });
});
