import { describe, expect, it } from "vitest";
import { NoRoomError } from "../../../src/chain/errors/no-room-error.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { priorityFeeOf, readPrice } from "../../../src/chain/units/priority-fee.ts";

const choose = (recentPrices: number[] | Error) => {
  const fees = recentPrices instanceof Error ? [] : recentPrices;
  const answer = fees.map((prioritizationFee, slot) => ({ slot, prioritizationFee }));
  const call = () =>
    recentPrices instanceof Error ? Promise.reject(recentPrices) : Promise.resolve(answer);
  return readPrice({ call, callEndpoint: call } as never, []);
};

describe("the priority fee", () => {
  it("is the unit price times the unit limit, rounded up to a lamport", () => {
    const most = toLamports(50_000);
    expect(priorityFeeOf(1_000n, 5_000, most)).toBe(5n);
    expect(priorityFeeOf(1_000n, 5_001, most)).toBe(6n);
    expect(priorityFeeOf(0n, 5_000, most)).toBe(0n);
  });

  it("is the price that was enough in three of four recent slots", async () => {
    expect(await choose([40_000, 10_000, 20_000, 30_000])).toBe(40_000n);
    expect(await choose(Array.from({ length: 100 }, (_, i) => i * 1_000))).toBe(75_000n);
  });

  it("has a floor, even when the recent prices cannot be read", async () => {
    expect(await choose([0, 0, 0])).toBe(1_000n);
    expect(await choose([])).toBe(1_000n);
    expect(await choose(new Error("down"))).toBe(1_000n);
  });

  it("is not chosen without a call to the chain", async () => {
    const refusal = new NoRoomError({ scope: "CALLER", retryAfterSeconds: 1 });
    await expect(choose(refusal)).rejects.toBe(refusal);
  });

  it.each([
    [10_000, 50_000],
    [7_777, 1],
    [33_333, 49_999],
    [5_000, 0],
  ])("never exceeds the cap: %i units, %i lamports", async (unitLimit, maxFee) => {
    const price = await choose([10 ** 12]);
    expect(priorityFeeOf(price, unitLimit, toLamports(maxFee))).toBe(BigInt(maxFee));
  });
});
