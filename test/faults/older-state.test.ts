import { afterEach, expect, it } from "vitest";
import { toAccountJson } from "../../src/sandbox/rpc/account-json.ts";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let liar: LyingEndpoint;
afterEach(async () => {
  liar.stopLying();
  await world.close();
  await liar.close();
});

/** A gateway that prefers an endpoint that lies to an honest one, or has no other. */
const start = async ({ withHonest }: { withHonest: boolean }) => {
  world = await startWorld(async (sandbox) => {
    liar = await startLyingEndpoint(sandbox);
    // Reads fail soon while no endpoint has reached the required slot.
    return withHonest
      ? { SOLANA_RPC_URL: `${liar.url},${sandbox.rpc.url}` }
      : { SOLANA_RPC_URL: liar.url, RPC_TIMEOUT_MS: "5000" };
  });
};
const collect = () => world.collect(world.account("creator").id);

/**
 * Makes the endpoint show the accounts as they are now, in the slot of now, whatever slot callers
 * require.
 */
function stopUpdates(): void {
  const { chain } = world.sandbox;
  const accounts = new Map(
    world.sandbox.accounts
      .flatMap(({ creatorVault, ammVault, address }) => [creatorVault, ammVault, address])
      .map((address) => [address, chain.account(address)]),
  );
  const context = { slot: chain.slot("finalized") };
  liar.lie({
    getMultipleAccounts(tellTruth, [keys, { dataSlice }]) {
      const value = tellTruth().value.map((truth: unknown, i: number) => {
        const old = accounts.get(keys[i]);
        return old === undefined ? truth : toAccountJson(old, dataSlice);
      });
      return { context, value };
    },
    getSlot: () => context.slot,
  });
}

it("fees that a collect has moved are not shown as uncollected by a node that ignores the required slot", async () => {
  await start({ withHonest: true });
  stopUpdates();
  expect((await collect()).body).toMatchObject({ success: true, collected: "3.1000" });
  const { balance } = (await world.lookup("creator")).body;
  expect(balance).toMatchObject({ vault: "0.0000", pda: "8.3000" });
  expect((await collect()).body).toMatchObject({ error: "NOTHING_TO_COLLECT" });
  expect(world.sandbox.landedCollects()).toHaveLength(1);
});

it("a node that ignores the required slot shows nothing of the account while it is the only one", async () => {
  await start({ withHonest: false });
  stopUpdates();
  expect((await collect()).body).toMatchObject({ collected: "3.1000" });
  expect((await world.lookup("creator")).body.error).toBe("LOOKUP_FAILED");
  expect((await world.lookup("artist001")).status).toBe(200);
  liar.stopLying();
  expect((await world.lookup("creator")).body.balance.pda).toBe("8.3000");
});

it("a simulation and a blockhash of an older state are not used", async () => {
  await start({ withHonest: true });
  expect((await collect()).body).toMatchObject({ collected: "3.1000" });
  const first = { context: { slot: 1 } };
  liar.lie({
    simulateTransaction: (tellTruth) => ({ ...tellTruth(), ...first }),
    getLatestBlockhash: (tellTruth) => ({ ...tellTruth(), ...first }),
  });
  world.forgetCalls();
  expect((await world.collect(world.account("artist001").id)).status).toBe(200);
  const { calls } = world.sandbox.rpc;
  expect(calls.filter(isMethod("simulateTransaction", "getLatestBlockhash"))).toHaveLength(2);
});
