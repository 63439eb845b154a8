import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newMint } from "../support/new-mint.ts";
import { isAccountsRead } from "../support/sandbox.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../support/world.ts";

/** More lamports than JSON numbers hold exactly. */
const WHALE = 2n ** 60n + 1n;
const SOL = 1_000_000_000n;

let world: World;
beforeEach(async () => {
  world = await startWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
  await world.lookup("creator");
});
afterEach(() => world.close());

const enrich = (address: string) => {
  world.sandbox.chain.setBalance(address, WHALE);
};
function launch(): string {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator: world.account("creator").address, fees: SOL });
  return mint;
}
/** Which endpoints were asked for accounts. */
const asked = () =>
  [world.sandbox.rpc, world.secondRpc].map(({ calls }) => calls.some(isAccountsRead));
function forgetCalls(): void {
  world.forgetCalls();
  world.secondRpc.calls.length = 0;
}

describe("a coin with an account of 2^53 lamports or more", () => {
  it("is left out alone: the wallet's other coins and vaults are shown and collected", async () => {
    const [good, bad] = [launch(), launch()];
    enrich(world.sandbox.coins.addressesOf(bad).sharingConfig.creatorVault);
    forgetCalls();
    const { body } = await world.request(`/wallet/lookup?handle=creator&mint=${bad}&mint=${good}`);
    expect(body.balance.vault).toBe("4.1000");
    expect(body.coins).toMatchObject([{ mint: good, waiting: "1.0000" }]);
    expect(asked()).toEqual([true, false]);
    const collected = await world.collect(world.account("creator").id, {}, [bad, good]);
    expect(collected.body).toMatchObject({ success: true, collected: "4.1000" });
  });
});

describe("a wallet with an account of 2^53 lamports or more", () => {
  it("fails alone, and no endpoint backs off", async () => {
    // Both handles are cached, so one call reads both wallets.
    await world.lookup("artist001");
    enrich(world.account("artist001").creatorVault);
    const { body } = await world.graphql(
      `{ bad: wallet(handle: "artist001") { address balance { vault } } good: wallet(handle: "creator") { balance { vault } } }`,
    );
    expect(body.data).toMatchObject({
      bad: { balance: null },
      good: { balance: { vault: "3.1000" } },
    });
    expect(body.errors).toMatchObject([
      { path: ["bad", "balance"], extensions: { code: "LOOKUP_FAILED" } },
    ]);
    expect((await world.lookup("artist001")).body.error).toBe("LOOKUP_FAILED");
    forgetCalls();
    expect((await world.lookup("creator")).body.balance.vault).toBe("3.1000");
    expect(asked()).toEqual([true, false]);
  });
});
