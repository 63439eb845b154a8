import { expect, it } from "vitest";
import { createHeightCheck } from "../../../src/chain/slots/height-check.ts";
import { addMs, monotonicNow } from "../../../src/time/monotonic.ts";

let now = monotonicNow();
const newCheck = () => createHeightCheck(() => now);

it("any block height is possible while no endpoint has reported one", () => {
  expect(newCheck().isPossible(10 ** 12)).toBe(true);
});

it("a block height may be ahead of the highest one by what time allows, with some slack", () => {
  const heights = newCheck();
  heights.report(1_000);
  expect([1_500, 1_501].map(heights.isPossible)).toEqual([true, false]);
  now = addMs(now, 10_000);
  expect([1_700, 1_701].map(heights.isPossible)).toEqual([true, false]);
});

it("an impossible block height does not change what is possible, nor does one below the highest", () => {
  const heights = newCheck();
  for (const height of [10 ** 6, 10 ** 12, 1]) heights.report(height);
  expect([10 ** 6 + 500, 10 ** 12].map(heights.isPossible)).toEqual([true, false]);
});

it.each([10 ** 12, 1])("the wrong block height %i counts for a minute", (wrong) => {
  const heights = newCheck();
  heights.report(wrong);
  now = addMs(now, 60_001);
  heights.report(10 ** 6);
  expect([10 ** 6, 10 ** 12].map(heights.isPossible)).toEqual([true, false]);
});
