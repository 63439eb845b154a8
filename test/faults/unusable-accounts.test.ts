import { beforeEach, expect } from "vitest";
import { newMint } from "../support/new-mint.ts";
import { isAccountsRead } from "../support/sandbox.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";
import { BOTH_ENDPOINTS } from "../support/world.ts";

/** More lamports than JSON numbers hold exactly. */
const WHALE = 2n ** 60n + 1n;
const SOL = 1_000_000_000n;

const it = withNewWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
beforeEach(async () => {
  await world.lookup("creator");
});

/** Which endpoints were asked for accounts. */
const asked = () =>
  [world.sandbox.rpc, world.secondRpc].map(({ calls }) => calls.some(isAccountsRead));

it("a vault of 2^53 lamports or more is shown as 2^53 - 1, and no other wallet or endpoint suffers", async () => {
  // Both handles are cached, so one call reads both wallets.
  await world.lookup("artist001");
  chain.setBalance(world.account("artist001").creatorVault, WHALE);
  world.forgetCalls();
  world.secondRpc.calls.length = 0;
  const { body } = await world.graphql(
    `{ rich: wallet(handle: "artist001") { balance { vault } } other: wallet(handle: "creator") { balance { vault } } }`,
  );
  expect(body.data).toMatchObject({
    rich: { balance: { vault: "9007199.2540" } },
    other: { balance: { vault: "3.1000" } },
  });
  expect(asked()).toEqual([true, false]);
});

it("a coin with an account of 2^53 lamports or more is collected with the others", async () => {
  const [good, rich] = [newMint(), newMint()];
  for (const mint of [good, rich])
    world.sandbox.coins.launch({ mint, creator: world.account("creator").address, fees: SOL });
  const { creatorVault } = world.sandbox.coins.addressesOf(rich).sharingConfig;
  chain.setBalance(creatorVault, WHALE);
  const collected = await world.collect(world.account("creator").id, {}, [rich, good]);
  expect(collected.body).toMatchObject({ success: true, collected: "5.1000" });
});
