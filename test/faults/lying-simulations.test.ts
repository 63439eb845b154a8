import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { coinAddressesOf } from "../../src/chain/launchpad/coin-addresses.ts";
import { rpcError, rpcResult } from "../support/rpc-answers.ts";
import { newMint } from "../support/new-mint.ts";
import { dearerBy, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isAccountsRead, isMethod } from "../support/sandbox.ts";
import { startWithPreferredLiar } from "../support/preferred-liar.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000;

let world: World;
let liar: LyingEndpoint;
beforeEach(async () => {
  ({ world, liar } = await startWithPreferredLiar());
});
afterEach(async () => {
  await world.close();
  await liar.close();
});

const lieInSimulations = (change: (value: any, params: any[]) => object) => {
  liar.lie({
    simulateTransaction(tellTruth, params) {
      const { context, value } = tellTruth();
      return { context, value: { ...value, ...change(value, params) } };
    },
  });
};
/** The positions of the fee payer among the accounts of a simulation. */
const payerIn = ([, { accounts }]: any[]): number =>
  accounts.addresses.indexOf(world.sandbox.feePayer);
const withPayer = (value: any, params: any[], change: (account: any) => unknown) =>
  value.accounts.with(payerIn(params), change(value.accounts[payerIn(params)]));
const add = (account: any, lamports: number) => ({
  ...account,
  lamports: Number(account.lamports) + lamports,
});
/** The honest endpoint's calls. */
const callsTo = (...methods: string[]) => world.sandbox.rpc.calls.filter(isMethod(...methods));

/** Launches coins of an account, whose fees wait on the curve or in the pool. */
function launchCoins(handle: string, place: "curve" | "pool", count: number): string[] {
  const { coins } = world.sandbox;
  const creator = world.account(handle).address;
  return Array.from({ length: count }, () => {
    const mint = newMint();
    const fees = BigInt(SOL);
    if (place === "curve") coins.launch({ mint, creator, fees });
    else {
      coins.launch({ mint, creator });
      coins.migrate(mint, { fees });
    }
    return mint;
  });
}
const collectCoins = async (handle: string, mints: readonly string[]) =>
  (await world.collect(world.account(handle).id, {}, [...mints])).body;

describe("a preferred endpoint that omits members of simulations", () => {
  it.each<[string, (value: any, params: any[]) => object]>([
    ["the accounts", () => ({ accounts: null })],
    ["one account", ({ accounts }) => ({ accounts: accounts.slice(1) })],
    ["what the accounts hold", ({ accounts }) => ({ accounts: accounts.map(() => null) })],
    ["the fee payer", (value, params) => ({ accounts: withPayer(value, params, () => null) })],
    ["the compute units", () => ({ unitsConsumed: null })],
    ["the compute units, as 0", () => ({ unitsConsumed: 0 })],
    ["the error", () => ({ err: undefined })],
  ])("is not asked alone: %s", async (_, omit) => {
    lieInSimulations(omit);
    const mints = launchCoins("newcomer", "curve", 1);
    expect(await collectCoins("newcomer", mints)).toMatchObject({ collected: "1.0000" });
    const { id } = world.account("creator");
    expect((await world.collect(id)).body).toMatchObject({ collected: "3.1000" });
    expect(world.sandbox.landedCollects()).toHaveLength(2);
  });
});

describe("a preferred endpoint that reports false errors of simulations", () => {
  it.each([
    ["that the fee payer does not exist", "AccountNotFound"],
    ["that the fee payer cannot pay", "InsufficientFundsForFee"],
    ["that the first instruction fails", { InstructionError: [0, { Custom: 1 }] }],
    [
      "that the receiver would stay below its rent",
      { InsufficientFundsForRent: { account_index: 1 } },
    ],
  ])("decides nothing alone: %s", async (_, err) => {
    lieInSimulations(() => ({ err, accounts: null }));
    const { id } = world.account("creator");
    expect((await world.collect(id)).body).toMatchObject({ collected: "3.1000" });
    expect(callsTo("simulateTransaction")).toHaveLength(1);
  });
});

const SWEEP_FAILS = { err: { InstructionError: [0, { Custom: 1 }] }, accounts: null };
/** Fees stay in the vaults of the account and of its coins' sharing configs. */
const leaveInVaults =
  (handle: string) =>
  ({ accounts }: any, [, { accounts: wanted }]: any[]) => {
    const { creatorVault, coins } = world.account(handle);
    const vaults = [creatorVault, ...coins.map((coin) => coin.sharingConfig.creatorVault)];
    const isVault = (i: number) => vaults.includes(wanted.addresses[i]);
    const left = accounts.map((each: any, i: number) => (isVault(i) ? add(each, 5 * SOL) : each));
    return { accounts: left };
  };

describe("a preferred endpoint whose simulations leave fees behind", () => {
  it.each<[string, (handle: string) => (value: any, params: any[]) => object]>([
    [
      "the fee payer pays rent",
      () => (value) => ({ preBalances: value.preBalances.with(0, 100_000 * SOL) }),
    ],
    ["fees stay in the vaults", leaveInVaults],
    ["a sweep fails", () => () => SWEEP_FAILS],
  ])("does not decide alone that there is nothing to collect: %s", async (_, toLie) => {
    // The account's vault comes first, then the coin that it shares.
    const all = [
      ["newcomer", "1.0000"],
      ["graduate", "2.5000"],
      ["band", "0.2000"],
      ["band", "0.6000"],
    ] as const;
    for (const [handle, collected] of all) {
      const own = world.account(handle).coins.map(({ mint }) => mint);
      const mints = own.length > 0 ? own : launchCoins(handle, "curve", 1);
      lieInSimulations(toLie(handle));
      expect(await collectCoins(handle, mints)).toMatchObject({ collected });
    }
    expect(world.sandbox.landedCollects().map(({ err }) => err)).toEqual(all.map(() => null));
  });

  it("decides nothing alone while the other endpoint is behind for a moment", async () => {
    const mints = launchCoins("newcomer", "curve", 1);
    lieInSimulations((value) => ({ preBalances: value.preBalances.with(0, 100_000 * SOL) }));
    world.sandbox.rpc.faults.add({
      when: isMethod("simulateTransaction"),
      times: 6,
      then: rpcError({ code: -32016 }),
    });
    expect(await collectCoins("newcomer", mints)).toMatchObject({ collected: "1.0000" });
  });

  it("costs one more simulation", async () => {
    const { id } = world.account("creator");
    lieInSimulations(leaveInVaults("creator"));
    liar.calls.length = 0;
    world.forgetCalls();
    expect((await world.collect(id)).body).toMatchObject({ collected: "3.1000" });
    const simulations = liar.calls.filter(isMethod("simulateTransaction"));
    expect([simulations, callsTo("simulateTransaction")].map(({ length }) => length)).toEqual([
      1, 1,
    ]);
  });
});

it("an endpoint that is asked second does not make the fee payer short", async () => {
  const mints = launchCoins("creator", "curve", 1);
  let simulations = 0;
  lieInSimulations(() => (++simulations === 1 ? SWEEP_FAILS : {}));
  const value = { err: "AccountNotFound", logs: [], accounts: null };
  const answer = rpcResult({ context: { slot: world.sandbox.chain.slot("finalized") }, value });
  world.sandbox.rpc.faults.add({ when: isMethod("simulateTransaction"), then: answer });
  expect(await collectCoins("creator", mints)).toMatchObject({ collected: "3.1000" });
});

describe("a fee payer's balance", () => {
  it("that the preferred endpoint understates does not make the fee payer short", async () => {
    lieInSimulations((value, params) => ({
      accounts: withPayer(value, params, (account) => ({ ...account, lamports: 1 })),
    }));
    const { id } = world.account("creator");
    expect((await world.collect(id)).body).toMatchObject({ collected: "3.1000" });
  });

  it("that the preferred endpoint overstates fails no sweep", async () => {
    lieInSimulations((value, params) => ({
      accounts: withPayer(value, params, (account) => add(account, 100 * SOL)),
      preBalances: value.preBalances.map((lamports: any) => Number(lamports) + 100 * SOL),
    }));
    for (const place of ["curve", "pool"] as const) {
      const mints = launchCoins("newcomer", place, 2);
      expect(await collectCoins("newcomer", mints)).toMatchObject({ success: true });
    }
    expect(world.sandbox.landedCollects().map(({ err }) => err)).toEqual([null, null]);
  });

  it("is read at another endpoint than the simulation's, once for each simulation with sweeps", async () => {
    const mints = launchCoins("newcomer", "curve", 1);
    liar.calls.length = 0;
    world.forgetCalls();
    await collectCoins("newcomer", mints);
    expect(callsTo("simulateTransaction")).toEqual([]);
    expect(world.sandbox.rpc.calls.filter(isAccountsRead)).toHaveLength(1);
    const [simulations, reads] = [isMethod("simulateTransaction"), isAccountsRead].map(
      (is) => liar.calls.filter(is).length,
    );
    expect([simulations, reads]).toEqual([1, 1]);
  });
});

describe("compute units that the preferred endpoint understates", () => {
  it.each([
    ["a curve", "curve", 1],
    ["ten curves", "curve", 10],
    ["a pool", "pool", 1],
    ["five pools", "pool", 5],
  ] as const)("fail no sweep of %s", async (_, place, count) => {
    lieInSimulations(() => ({ unitsConsumed: 1 }));
    const mints = launchCoins("newcomer", place, count);
    expect(await collectCoins("newcomer", mints)).toMatchObject({ success: true });
    expect(world.sandbox.landedCollects().map(({ err }) => err)).toEqual([null]);
  });

  it("fail no collect of vaults, and none of shared fees", async () => {
    lieInSimulations(() => ({ unitsConsumed: 1 }));
    for (const handle of ["artist001", "graduate", "band"]) {
      const mints = world.account(handle).coins.map(({ mint }) => mint);
      expect(await collectCoins(handle, mints)).toMatchObject({ success: true });
    }
    expect(world.sandbox.landedCollects().map(({ err }) => err)).toEqual([null, null, null]);
  });
});

it("of two simulations that cost more than planned, the cheaper one counts", async () => {
  await world.close();
  await liar.close();
  const started = await startWithLyingEndpoints(2);
  world = started.world;
  const [dearer, cheaper] = started.endpoints;
  liar = dearer!;
  try {
    dearer!.lie(dearerBy(SOL));
    cheaper!.lie(dearerBy(5_000));
    const mints = launchCoins("newcomer", "curve", 1);
    expect(await collectCoins("newcomer", mints)).toMatchObject({ collected: "1.0000" });
  } finally {
    await cheaper!.close();
  }
});

describe("of three endpoints, an optimistic second one", () => {
  let endpoints: LyingEndpoint[];
  beforeEach(async () => {
    await world.close();
    await liar.close();
    ({ world, endpoints } = await startWithLyingEndpoints(3));
    liar = endpoints[0]!;
    // Simulations succeed, whatever they show.
    endpoints[1]!.lie({
      simulateTransaction(tellTruth, [, { accounts }]) {
        const truth = tellTruth();
        const { context, value } = truth;
        if (value.err === null) return truth;
        const { chain } = world.sandbox;
        const afterwards = accounts.addresses.map((address: string) => ({
          lamports: Number(chain.balance(address) || chain.rentExemptMinimum(0)),
          data: ["", "base64"],
        }));
        const lies = { err: null, unitsConsumed: 20_000, accounts: afterwards, preBalances: null };
        return { context, value: { ...value, ...lies } };
      },
    });
  });
  afterEach(() => Promise.all(endpoints.slice(1).map((endpoint) => endpoint.close())));

  /** A coin whose sweep fails, because its curve holds less than it claims. */
  function launchFailing(): string {
    const [mint] = launchCoins("newcomer", "curve", 1);
    const { curve } = coinAddressesOf(mint!);
    const { chain } = world.sandbox;
    chain.setAccount(curve, { ...chain.account(curve)!, lamports: BigInt(SOL) / 2n });
    return mint!;
  }

  it("has no transaction signed that fails", async () => {
    expect(await collectCoins("newcomer", [launchFailing()])).toMatchObject({ success: false });
    expect(world.sandbox.landedCollects()).toEqual([]);
  });

  it("counts if the third agrees", async () => {
    const mints = launchCoins("newcomer", "curve", 1);
    lieInSimulations(() => SWEEP_FAILS);
    expect(await collectCoins("newcomer", mints)).toMatchObject({ collected: "1.0000" });
  });

  it("counts if the third does not work", async () => {
    const mints = launchCoins("newcomer", "curve", 1);
    lieInSimulations(() => SWEEP_FAILS);
    endpoints[2]!.faults.add({ when: isMethod("simulateTransaction"), then: "reset" });
    expect(await collectCoins("newcomer", mints)).toMatchObject({ collected: "1.0000" });
  });
});
