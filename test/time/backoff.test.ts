import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { afterFailure, type Backoff, isBackingOff } from "../../src/time/backoff.ts";
import { addMs, monotonicNow, msUntil } from "../../src/time/monotonic.ts";

const LIMITS = { firstMs: 500, longestMs: 3_000 };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A backoff of `waitMs` that ends in `leftMs`. */
const backoffOf = (waitMs: number, leftMs: number): Backoff => ({
  waitMs,
  endsAt: addMs(monotonicNow(), leftMs),
});

it.each([
  ["without a backoff starts the first wait", undefined, 500, 500],
  ["while the backoff lasts changes nothing", [500, 499], 500, 499],
  ["in the last moment of the backoff changes nothing", [500, 0.001], 500, 0.001],
  ["when the backoff ends doubles the wait", [500, 0], 1_000, 1_000],
  ["long after the backoff has ended doubles the wait", [1_000, -60_000], 2_000, 2_000],
  ["doubles the wait at most to the longest", [2_000, 0], 3_000, 3_000],
  ["after the longest wait starts the longest again", [3_000, 0], 3_000, 3_000],
  ["while the longest wait lasts changes nothing", [3_000, 2_000], 3_000, 2_000],
] as const)("a failure %s", (_, before, waitMs, leftMs) => {
  const backoff = afterFailure(before && backoffOf(before[0], before[1]), LIMITS);
  expect(backoff.waitMs).toBe(waitMs);
  expect(msUntil(backoff.endsAt)).toBeCloseTo(leftMs, 6);
  expect(isBackingOff(backoff)).toBe(true);
});

it("a backoff counts down, and is over at its end", () => {
  const backoff = afterFailure(undefined, LIMITS);
  const left = [];
  for (let i = 0; i < 4; i++) {
    left.push([Math.max(0, msUntil(backoff.endsAt)), isBackingOff(backoff)]);
    vi.advanceTimersByTime(200);
  }
  expect(left).toEqual([
    [500, true],
    [300, true],
    [100, true],
    [0, false],
  ]);
});
