import { expect, it } from "vitest";
import { newMint } from "../support/new-mint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";

it("compute units that an endpoint understates fail no transaction with coins, vaults or shared fees", async () => {
  const {
    world,
    endpoints: [endpoint],
  } = await startWithLyingEndpoints(1);
  endpoint.lie({
    simulateTransaction(tellTruth) {
      const { context, value } = tellTruth();
      return { context, value: { ...value, unitsConsumed: 1 } };
    },
  });
  const { chain, coins, landedCollects } = world.sandbox;
  const launch = (handle: string, count: number, inPool: boolean) =>
    Array.from({ length: count }, () => {
      const mint = newMint();
      const { address: creator } = world.account(handle);
      coins.launch({ mint, creator, fees: inPool ? 0n : 10n ** 9n });
      if (inPool) coins.migrate(mint, { fees: 10n ** 9n });
      return mint;
    });
  const mintsOf = (handle: string) => world.account(handle).coins.map(({ mint }) => mint);
  // Both have no vaults.
  chain.setBalance(world.account("artist002").creatorVault, 0n);
  const collects: [string, string[]][] = [
    ["newcomer", launch("newcomer", 5, true)],
    ["artist002", launch("artist002", 10, false)],
    ["artist001", []],
    ["graduate", mintsOf("graduate")],
    ["band", mintsOf("band")],
  ];
  for (const [handle, mints] of collects)
    expect((await world.collect(world.account(handle).id, {}, mints)).body).toMatchObject({
      success: true,
    });
  expect(landedCollects().map(({ err }) => err)).toEqual(collects.map(() => null));
});
