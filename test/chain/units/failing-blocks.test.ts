import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createFailingBlocks } from "../../../src/chain/units/failing-blocks.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("A block that makes an account's coins fail three times in an hour cannot collect them for an hour", () => {
  const blocks = createFailingBlocks();
  const fail = (times: number) => {
    for (let i = 0; i < times; i++) {
      blocks.failed("a", "block");
      vi.advanceTimersByTime(1_000);
    }
  };
  fail(2);
  expect(blocks.leftMs("a", "block")).toBe(0);
  vi.advanceTimersByTime(3_600_000);
  fail(2);
  expect(blocks.leftMs("a", "block")).toBe(0);
  fail(1);
  expect(blocks.leftMs("a", "block")).toBe(3_599_000);
  expect([blocks.leftMs("a", "other"), blocks.leftMs("b", "block")]).toEqual([0, 0]);
  expect(blocks.leftMs("a", undefined)).toBe(0);
  vi.advanceTimersByTime(3_599_000);
  expect(blocks.leftMs("a", "block")).toBe(0);
});
