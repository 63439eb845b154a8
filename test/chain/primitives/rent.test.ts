import { describe, expect, it } from "vitest";
import { decodeRent, rentMinimumOf } from "../../../src/chain/primitives/rent.ts";

function sysvar(lamportsPerByteYear: bigint, exemptionThreshold: number, bytes = 17) {
  const data = Buffer.alloc(17, 50);
  data.writeBigUInt64LE(lamportsPerByteYear);
  data.writeDoubleLE(exemptionThreshold, 8);
  return data.subarray(0, bytes);
}

describe("the rent sysvar", () => {
  it.each([
    ["until 2026", 3_480n, 2, 890_880n, 2_039_280n],
    ["today", 5_080n, 1, 650_240n, 1_488_440n],
    ["as proposed", 696n, 1, 89_088n, 203_928n],
    ["at the lowest credible rate", 500n, 1, 64_000n, 146_500n],
    ["at the highest credible rate", 7_000n, 2, 1_792_000n, 4_102_000n],
  ])("gives the rent-exempt minimum of 0 and 165 bytes: %s", (_, rate, threshold, empty, token) => {
    const rent = decodeRent(sysvar(rate, threshold))!;
    expect([rentMinimumOf(rent, 0), rentMinimumOf(rent, 165)]).toEqual([empty, token]);
  });

  it.each([
    ["is missing", undefined],
    ["is too short", sysvar(5_080n, 1, 16)],
    ["has a rate of 0", sysvar(0n, 1)],
    ["has a rate that is too low", sysvar(499n, 1)],
    ["has a rate that is too high", sysvar(7_001n, 2)],
    ["has the highest rate of all", sysvar(2n ** 64n - 1n, 1)],
    ["has a threshold that is no number", sysvar(5_080n, Number.NaN)],
    ["has an infinite threshold", sysvar(5_080n, Infinity)],
    ["has a negative threshold", sysvar(5_080n, -1)],
  ])("is unreadable if it %s", (_, data) => {
    expect(decodeRent(data)).toBeUndefined();
  });
});
