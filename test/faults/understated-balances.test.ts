import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RENT_SYSVAR } from "../../src/chain/primitives/rent.ts";
import { CLOCK_SYSVAR } from "../../src/chain/slots/clock.ts";
import { newMint } from "../support/new-mint.ts";
import { dearerBy, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWithPreferredLiar } from "../support/preferred-liar.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000;
const SYSVARS = [CLOCK_SYSVAR, RENT_SYSVAR];

let world: World;
let liar: LyingEndpoint;
beforeEach(async () => {
  ({ world, liar } = await startWithPreferredLiar());
});
afterEach(async () => {
  await world.close();
  await liar.close();
});

/** The preferred endpoint changes what it returns of accounts that `isChosen`, but for sysvars. */
const lieAbout = (isChosen: (address: string) => boolean, change: (account: any) => unknown) => {
  liar.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const { context, value } = tellTruth();
      const isLie = (address: string) => !SYSVARS.includes(address) && isChosen(address);
      return {
        context,
        value: value.map((account: any, i: number) =>
          isLie(keys[i]) && account ? change(account) : account,
        ),
      };
    },
  });
};
const leaveOut = () => null;
const collect = (handle: string, mints: string[] = []) =>
  world.collect(world.account(handle).id, {}, mints);
const readsAt = (endpoint: { readonly calls: readonly { readonly method: string }[] }) =>
  endpoint.calls.filter(isMethod("getMultipleAccounts")).length;

function launchCoin(handle: string): string {
  const mint = newMint();
  const creator = world.account(handle).address;
  world.sandbox.coins.launch({ mint, creator, fees: BigInt(SOL) });
  return mint;
}

describe("an endpoint that hides fees alone does not decide that nothing waits", () => {
  it("when it leaves the vaults out", async () => {
    lieAbout(() => true, leaveOut);
    const { status, body } = await collect("creator");
    expect({ status, success: body.success }).toEqual({ status: 200, success: true });
  });

  it("when it understates the vaults", async () => {
    const { creatorVault, ammVault } = world.account("creator");
    lieAbout(
      (address) => [creatorVault, ammVault].includes(address),
      (account) => (account.space === 0 ? { ...account, lamports: 700_000 } : null),
    );
    expect((await collect("creator")).body).toMatchObject({ success: true });
  });

  it("when it leaves out the coin that the caller names", async () => {
    const mint = launchCoin("creator");
    const { creatorVault, ammVault, address } = world.account("creator");
    const { chain } = world.sandbox;
    await collect("creator");
    chain.setBalance(creatorVault, chain.balance(creatorVault) + BigInt(SOL));
    const own = [creatorVault, ammVault, address];
    lieAbout((account) => !own.includes(account), leaveOut);
    const { body } = await collect("creator", [mint]);
    expect(body).toMatchObject({ success: true, collected: "2.0000" });
  });
});

it("an endpoint does not confirm what it hides when another account of the batch is read again", async () => {
  const { chain } = world.sandbox;
  const [hidden, collected] = [world.account("artist010"), world.account("creator")];
  const slot = chain.slot("finalized");
  await collect("creator");
  for (const { creatorVault } of [hidden, collected]) chain.setBalance(creatorVault, BigInt(SOL));
  chain.advanceSlots(32);
  const own = [hidden.creatorVault, hidden.ammVault, hidden.address];
  // It reports a slot before that collect, so it is asked again for the account that was collected.
  liar.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const { context, value } = tellTruth();
      const hide = (account: any, i: number) => (own.includes(keys[i]) ? null : account);
      return { context: { ...context, slot }, value: value.map(hide) };
    },
  });
  const { body } = await world.graphql(
    "mutation ($collects: [CollectInput!]!) { collectMany(collects: $collects) { success } }",
    { collects: [hidden, collected].map(({ id }) => ({ socialId: id })) },
  );
  expect(body.data.collectMany).toEqual([{ success: true }, { success: true }]);
});

it("says that nothing waits after one read at each of two endpoints", async () => {
  world.forgetCalls();
  liar.calls.length = 0;
  const { body } = await collect("artist010");
  expect(body).toMatchObject({ success: false, error: "NOTHING_TO_COLLECT" });
  expect([readsAt(liar), readsAt(world.sandbox.rpc)]).toEqual([1, 1]);
});

it("says that nothing waits once the other endpoint has failed for some seconds", async () => {
  world.sandbox.rpc.faults.add({ then: "reset" });
  expect((await collect("artist010")).body.error).toBe("NOTHING_TO_COLLECT");
});

describe("an endpoint that answers alone, while others fail for a moment,", () => {
  it("does not decide that nothing waits", async () => {
    lieAbout(() => true, leaveOut);
    world.sandbox.rpc.faults.add({
      then: "reset",
      when: isMethod("getMultipleAccounts"),
      times: 2,
    });
    expect((await collect("creator")).body).toMatchObject({ success: true });
  });

  it("does not decide that a coin costs too much", async () => {
    const mint = launchCoin("artist010");
    liar.lie(dearerBy(SOL));
    world.sandbox.rpc.faults.add({
      then: "reset",
      when: isMethod("simulateTransaction"),
      times: 2,
    });
    expect((await collect("artist010", [mint])).body).toMatchObject({ success: true });
  });

  it.each(["getMultipleAccounts", "simulateTransaction"])(
    "decides nothing while the other's %s fails, until it has been asked again for some seconds",
    async (method) => {
      const mint = launchCoin("artist010");
      if (method === "getMultipleAccounts") lieAbout(() => true, leaveOut);
      else liar.lie(dearerBy(SOL));
      world.sandbox.rpc.faults.add({ then: "reset", when: isMethod(method) });
      world.forgetCalls();
      // Some providers do not serve all methods: then one endpoint must be enough.
      expect((await collect("artist010", [mint])).body.error).toBe("NOTHING_TO_COLLECT");
      expect(world.sandbox.rpc.calls.filter(isMethod(method)).length).toBeGreaterThan(3);
    },
  );

  it("decides nothing once the other answers again after a longer outage", async () => {
    const lift = world.sandbox.rpc.faults.add({
      then: "reset",
      when: isMethod("getMultipleAccounts"),
    });
    lieAbout(() => true, leaveOut);
    expect((await collect("creator")).body.error).toBe("NOTHING_TO_COLLECT");
    lift();
    // An endpoint that is down is asked once a second.
    await expect.poll(async () => (await collect("creator")).body.success as unknown).toBe(true);
  });
});
