import { describe, expect, it } from "vitest";
import {
  formatSol,
  saturatingSubtract,
  toLamports,
} from "../../../src/chain/primitives/lamports.ts";

describe("lamports", () => {
  it.each([
    [0n, "0.0000"],
    [1n, "0.0000"],
    [99_999n, "0.0000"],
    [100_000n, "0.0001"],
    [3_100_000_000n, "3.1000"],
    [3_100_099_999n, "3.1000"],
    [999_999_999n, "0.9999"],
    [18_446_744_073_709_551_615n, "18446744073.7095"],
  ])("are truncated to four decimals of SOL, never rounded up: %s becomes %s", (lamports, sol) => {
    expect(formatSol(toLamports(lamports))).toBe(sol);
  });

  it("reject a JSON number that has lost digits", () => {
    expect(() => toLamports(2 ** 53)).toThrow("below 2^53");
    expect(() => toLamports(0.5)).toThrow("whole number");
  });

  it("are never negative", () => {
    expect(() => formatSol(toLamports(-1n))).toThrow("0 or more");
    expect(saturatingSubtract(toLamports(5n), toLamports(7n))).toBe(0n);
    expect(saturatingSubtract(toLamports(7n), toLamports(5n))).toBe(2n);
  });
});
