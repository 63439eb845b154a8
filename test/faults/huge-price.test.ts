import { expect, it } from "vitest";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWorld } from "../support/world.ts";

it("one price that is too large for a number neither lowers the price nor blames the endpoints", async () => {
  let endpoints: LyingEndpoint[] = [];
  const world = await startWorld(async (sandbox) => {
    endpoints = await Promise.all([1, 2].map(() => startLyingEndpoint(sandbox)));
    return { SOLANA_RPC_URL: endpoints.map(({ url }) => url).join() };
  });
  const prices = [...Array<number>(149).fill(50_000), 2 ** 64];
  for (const endpoint of endpoints)
    endpoint.lie({
      getRecentPrioritizationFees: () =>
        prices.map((prioritizationFee, slot) => ({ slot, prioritizationFee })),
    });
  const { body } = await world.collect(world.account("creator").id);
  expect(body).toMatchObject({ success: true });
  // The floor would cost about 10 lamports besides the base fee of 5,000.
  expect(Number(world.sandbox.chain.landed(body.txSignature)!.feeLamports)).toBeGreaterThan(5_300);
  expect(world.logLines.filter((line) => line.includes("a chain endpoint fails"))).toEqual([]);
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});
