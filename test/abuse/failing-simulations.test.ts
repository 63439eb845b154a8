import { afterEach, beforeEach, describe, expect, vi } from "vitest";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import { curveOf } from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod } from "../support/sandbox.ts";
import { withNewWorld, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** How long a failed simulation is remembered. */
const REMEMBERED_MS = 10_000;
/** No transaction can write to it, so it fails a distribution to it. */
const SYSVAR = "SysvarRent111111111111111111111111111111111";
const HANDLE = "creator";

const it = withNewWorld({ RATE_LIMIT_MAX: "1000" });
let chain: World["sandbox"]["chain"];
beforeEach(() => {
  ({ chain } = world.sandbox);
  setVault(0n);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const account = () => world.account(HANDLE);
function setVault(fees: bigint): void {
  chain.setBalance(account().creatorVault, chain.rentExemptMinimum(0) + fees);
}
function launch(): string {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator: account().address, fees: SOL });
  return mint;
}
/** A coin of the account whose sweep fails: its curve records fees that it does not hold. */
function launchFailing(): string {
  const mint = launch();
  chain.setAccount(curveOf(mint), { ...chain.account(curveOf(mint))!, lamports: SOL / 2n });
  return mint;
}
/** A coin whose distribution fails, because nothing can write to one of its shareholders. */
function launchFailingShared(): string {
  const mint = newMint();
  const shareholders = [account().address, SYSVAR].map((address) => ({ address, bps: 5_000 }));
  world.sandbox.coins.launch({ mint, creator: STRANGER, kind: "shared", shareholders, fees: SOL });
  return mint;
}
const repair = (mint: string) => {
  world.sandbox.coins.launch({ mint, creator: account().address, fees: SOL });
};
const ten = (launchOne: () => string) => Array.from({ length: 10 }, launchOne);
const collect = async (mints: readonly string[] = []) => {
  const { status, body } = await world.collect(account().id, {}, mints);
  return { status, ...body };
};
const count = (...methods: string[]) => world.sandbox.rpc.calls.filter(isMethod(...methods)).length;
const simulations = () => count("simulateTransaction");
/** From now on, time passes only by the returned function. */
function stopTime(): (ms: number) => void {
  let at = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => at);
  return (ms) => {
    at += ms;
  };
}

describe("one collect of ten coins whose sweeps fail in the simulation", () => {
  it("makes at most two reads, and three simulations with their prices and blockhashes, before it signs", async () => {
    setVault(SOL);
    const mints = ten(launchFailing);
    world.forgetCalls();
    expect(await collect(mints)).toMatchObject({ success: true, collected: "1.0000" });
    const { calls } = world.sandbox.rpc;
    const before = calls.slice(0, calls.findIndex(isMethod("sendTransaction")));
    const most = {
      getMultipleAccounts: 2,
      simulateTransaction: 3,
      getRecentPrioritizationFees: 3,
      getLatestBlockhash: 3,
      getEpochInfo: 1,
    };
    for (const [method, times] of Object.entries(most))
      expect([method, before.filter(isMethod(method)).length <= times]).toEqual([method, true]);
    expect(before.filter((call) => !(call.method in most))).toEqual([]);
  });
});

describe.each([
  ["coins whose sweeps fail", launchFailing],
  ["coins whose distributions fail", launchFailingShared],
])("a second collect of ten %s in the simulation, within ten seconds", (_, launchOne) => {
  it("answers the same error without a simulation", async () => {
    const mints = ten(launchOne);
    stopTime();
    const first = await collect(mints);
    expect(first).toMatchObject({ success: false, error: "COLLECT_FAILED" });
    world.forgetCalls();
    // A collect tries only two of them, and the next one may try others.
    for (let i = 0; i < mints.length; i++) await collect(mints);
    const before = simulations();
    expect(before).toBeLessThanOrEqual(mints.length);
    expect(await collect(mints)).toEqual({ ...first, left: expect.any(Array) });
    expect(simulations()).toBe(before);
  });

  it("does not keep one without coins, or one with a good coin, from collecting", async () => {
    const mints = ten(launchOne);
    stopTime();
    await collect(mints);
    setVault(SOL);
    expect(await collect()).toMatchObject({ success: true, collected: "1.0000" });
    expect(await collect([launch()])).toMatchObject({ success: true, collected: "1.0000" });
  });

  it("collects the vault if it has fees now, and a good coin beside them, with one simulation", async () => {
    const mints = ten(launchOne);
    stopTime();
    for (let i = 0; i < mints.length; i++) await collect(mints);
    setVault(SOL);
    const good = launch();
    world.forgetCalls();
    const named = [good, ...mints.slice(0, 9)];
    expect(await collect(named)).toMatchObject({ success: true, collected: "2.0000" });
    expect(simulations()).toBe(1);
  });
});

describe("a failed simulation", () => {
  it.each([
    { of: "one coin", launch: launchFailing, repair },
    {
      of: "a distribution",
      launch: launchFailingShared,
      repair(mint: string) {
        const shareholders = [{ address: account().address, bps: 10_000 }];
        world.sandbox.coins.setSharing(mint, { shareholders });
      },
    },
  ])(
    "of $of is answered with the same error for ten seconds, and no longer",
    async ({ launch, repair }) => {
      const mint = launch();
      const pass = stopTime();
      const first = await collect([mint]);
      expect(first).toMatchObject({ success: false, error: "COLLECT_FAILED" });
      world.forgetCalls();
      pass(REMEMBERED_MS - 1_000);
      expect(await collect([mint])).toEqual(first);
      expect(simulations()).toBe(0);
      repair(mint);
      pass(2_000);
      expect(await collect([mint])).toMatchObject({ success: true, collected: "1.0000" });
    },
  );
});
