import { afterEach, beforeEach, expect, it } from "vitest";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import type { World } from "../support/world.ts";

let world: World;
let endpoints: LyingEndpoint[];
beforeEach(async () => {
  ({ world, endpoints } = await startWithLyingEndpoints(3));
});
afterEach(async () => {
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});

it("a rent above the signed one that a single endpoint reports is not charged to the fee budget", async () => {
  // The last of three endpoints answers first, and adds 900 SOL to what the collect cost.
  for (const honest of endpoints.slice(0, 2)) honest.lie({ getTransaction: () => null });
  endpoints[2]!.lie({
    getTransaction(tellTruth) {
      const truth = tellTruth();
      const balances = truth?.meta.preBalances as bigint[] | undefined;
      if (balances) balances[0]! += 900n * 10n ** 9n;
      return truth;
    },
  });
  const { id, coins } = world.account("launcher");
  const mints = coins.map(({ mint }) => mint);
  expect((await world.collect(id, {}, mints)).body).toMatchObject({ success: true });
  for (const endpoint of endpoints) endpoint.stopLying();
  const { body } = await world.collect(world.account("creator").id);
  expect(body).toMatchObject({ success: true, collected: "3.1000" });
  const metrics: string = (await world.request("/metrics")).body;
  const [, spent] = /^tributary_fees_spent_lamports_total (\d+)$/m.exec(metrics)!;
  expect(Number(spent)).toBeLessThan(10_000_000);
});
