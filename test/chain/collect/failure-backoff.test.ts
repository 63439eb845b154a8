import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createFailurePauses } from "../../../src/chain/collect/failure-backoff.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** In seconds, found by trying each of them. */
function pauseOf(pauses: ReturnType<typeof createFailurePauses>): number {
  for (let seconds = 0; ; seconds++) {
    try {
      pauses.assertRested("a");
      return seconds;
    } catch {
      vi.advanceTimersByTime(1_000);
    }
  }
}

it("an account that has not failed does not rest", () => {
  const pauses = createFailurePauses();
  pauses.failed("b");
  expect(pauseOf(pauses)).toBe(0);
});

it("a pause doubles with each failure in a row, up to an hour", () => {
  const pauses = createFailurePauses();
  const found = Array.from({ length: 8 }, () => {
    pauses.failed("a");
    return pauseOf(pauses);
  });
  expect(found).toEqual([60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
});

it("a success ends the row", () => {
  const pauses = createFailurePauses();
  pauses.failed("a");
  pauses.failed("a");
  pauses.succeeded("a");
  expect(pauseOf(pauses)).toBe(0);
  pauses.failed("a");
  expect(pauseOf(pauses)).toBe(60);
});

it("a refusal says for how long, in whole seconds", () => {
  const pauses = createFailurePauses();
  pauses.failed("a");
  vi.advanceTimersByTime(18_500);
  expect(() => {
    pauses.assertRested("a");
  }).toThrow("try again in 42 seconds.");
});
