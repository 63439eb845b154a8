import { expect, it } from "vitest";
import { createHeightCheck } from "../../../src/chain/slots/height-check.ts";
import { addMs, monotonicNow } from "../../../src/time/monotonic.ts";

let now = monotonicNow();
const newCheck = (...earlier: number[]) => {
  const heights = createHeightCheck(() => now);
  for (const height of earlier) heights.take(height);
  return heights;
};

it("any block height is possible while the endpoint has reported none", () => {
  expect(newCheck().take(10 ** 12)).toBe(true);
});

it("a block height may be ahead of the highest one by what time allows, with some slack", () => {
  expect(newCheck(1_000).take(1_501)).toBe(false);
  expect(newCheck(1_000).take(1_500)).toBe(true);
  const heights = newCheck(1_000);
  // Allows half a block more than 700, so that no rounding of these times decides.
  now = addMs(now, 10_025);
  expect([heights.take(1_701), heights.take(1_700)]).toEqual([false, true]);
});

it("an impossible block height does not change what is possible, nor does one below the highest", () => {
  const heights = newCheck(10 ** 6, 10 ** 12, 1);
  expect([heights.take(10 ** 12), heights.take(10 ** 6 + 500)]).toEqual([false, true]);
});

it.each([10 ** 12, 1])("the wrong block height %i counts for a minute", (wrong) => {
  const heights = newCheck(wrong);
  now = addMs(now, 60_001);
  expect([heights.take(10 ** 6), heights.take(10 ** 12)]).toEqual([true, false]);
});
