import { describe, expect, it } from "vitest";
import { newMint } from "../support/new-mint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isMethod } from "../support/sandbox.ts";

const SOL = 1_000_000_000n;

/** A gateway whose preferred endpoint, of two, changes its simulations. */
async function start(change: (value: any, feePayerIndex: number) => object) {
  const { world, endpoints } = await startWithLyingEndpoints(2);
  endpoints[0].lie({
    simulateTransaction(tellTruth, [, { accounts }]) {
      const { context, value } = tellTruth();
      const payerIndex = accounts?.addresses.indexOf(world.sandbox.feePayer);
      return { context, value: { ...value, ...change(value, payerIndex) } };
    },
  });
  const collect = async (handle: string, mints: string[] = []) =>
    (await world.collect(world.account(handle).id, {}, mints)).body;
  /** Launches coins of the newcomer, whose fees wait on the curve or in the pool. */
  const launch = (place: "curve" | "pool", count: number) =>
    Array.from({ length: count }, () => {
      const { coins } = world.sandbox;
      const mint = newMint();
      const { address: creator } = world.account("newcomer");
      coins.launch({ mint, creator, fees: place === "curve" ? SOL : 0n });
      if (place === "pool") coins.migrate(mint, { fees: SOL });
      return mint;
    });
  return { world, second: endpoints[1], collect, launch };
}

describe("a preferred endpoint that omits members of simulations", () => {
  it.each<[string, (value: any, payer: number) => object]>([
    ["the accounts", () => ({ accounts: null })],
    ["one account", ({ accounts }) => ({ accounts: accounts.slice(1) })],
    ["what the accounts hold", ({ accounts }) => ({ accounts: accounts.map(() => null) })],
    ["the fee payer", ({ accounts }, payer) => ({ accounts: accounts.with(payer, null) })],
    ["the compute units", () => ({ unitsConsumed: null })],
    ["the compute units, as 0", () => ({ unitsConsumed: 0 })],
    ["the error", () => ({ err: undefined })],
  ])("is not asked alone: %s", async (_, omit) => {
    const { second, collect, launch } = await start((value, payer) =>
      value.accounts ? omit(value, payer) : {},
    );
    expect(await collect("newcomer", launch("curve", 1))).toMatchObject({ collected: "1.0000" });
    expect(await collect("creator")).toMatchObject({ collected: "3.1000" });
    expect(second.calls.filter(isMethod("simulateTransaction"))).toHaveLength(2);
  });
});

describe("compute units that the preferred endpoint understates", () => {
  it.each([
    ["curve", 10],
    ["pool", 5],
  ] as const)("fail no sweep: %s, %i coins", async (place, count) => {
    const { world, collect, launch } = await start(() => ({ unitsConsumed: 1 }));
    expect(await collect("newcomer", launch(place, count))).toMatchObject({ success: true });
    expect(world.sandbox.landedCollects().map(({ err }) => err)).toEqual([null]);
  });

  it("fail no collect of vaults, and none of shared fees", async () => {
    const { world, collect } = await start(() => ({ unitsConsumed: 1 }));
    for (const handle of ["artist001", "graduate", "band"]) {
      const mints = world.account(handle).coins.map(({ mint }) => mint);
      expect(await collect(handle, mints)).toMatchObject({ success: true });
    }
    expect(world.sandbox.landedCollects().map(({ err }) => err)).toEqual([null, null, null]);
  });
});

it("one price that is too large for a number neither lowers the price nor blames the endpoint", async () => {
  const { world, endpoints } = await startWithLyingEndpoints(2);
  const prices = [...Array<number>(149).fill(50_000), 2 ** 64];
  endpoints[0].lie({
    getRecentPrioritizationFees: () =>
      prices.map((prioritizationFee, slot) => ({ slot, prioritizationFee })),
  });
  const { body } = await world.collect(world.account("creator").id);
  expect(body).toMatchObject({ success: true });
  // The floor would cost about 10 lamports besides the base fee of 5,000.
  expect(Number(world.sandbox.chain.landed(body.txSignature)!.feeLamports)).toBeGreaterThan(5_300);
  expect(world.logLines.join()).not.toContain("a chain endpoint fails");
});
