import { describe, expect, it } from "vitest";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isMethod } from "../support/sandbox.ts";

it("one price that is too large for a number neither lowers the price nor blames the endpoints", async () => {
  const { world, endpoints } = await startWithLyingEndpoints(2);
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

describe("of three endpoints", () => {
  const pricesOf = (price: number) => ({
    getRecentPrioritizationFees: () => [{ slot: 1, prioritizationFee: price }],
  });

  /** Collects with these prices; returns the fee in lamports, and how many prices were read. */
  async function collectWith(prices: readonly number[]) {
    const { world, endpoints } = await startWithLyingEndpoints(prices.length);
    prices.forEach((price, i) => {
      endpoints[i]!.lie(pricesOf(price));
    });
    const { body } = await world.collect(world.account("creator").id);
    const fee = Number(world.sandbox.chain.landed(body.txSignature)!.feeLamports);
    const isRead = isMethod("getRecentPrioritizationFees");
    const reads = endpoints.flatMap(({ calls }) => calls.filter(isRead)).length;
    await world.close();
    await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    return { fee, reads };
  }

  it("the preferred one does not decide alone that a collect pays a high price", async () => {
    const { fee, reads } = await collectWith([1e15, 0, 0]);
    expect(fee).toBeLessThan(5_100);
    expect(reads).toBe(2);
  });

  it("two that see congestion decide the price, the lower one", async () => {
    const { fee } = await collectWith([300_000, 100_000, 0]);
    expect(fee).toBeGreaterThan(5_000 + 25_000 * 0.1 - 1);
    expect(fee).toBeLessThan(5_000 + 25_000 * 0.3);
  });

  it("the others are not asked for a usual price", async () => {
    expect((await collectWith([10_000, 0, 0])).reads).toBe(1);
  });
});
