import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  addMs,
  earliest,
  latest,
  LONG_AGO,
  monotonicNow,
  msBetween,
  msSince,
  msUntil,
  NEVER,
} from "../../src/time/monotonic.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

it("a monotonic time passes by itself, and not when the wall clock is set", () => {
  const start = monotonicNow();
  const end = addMs(start, 1_000);
  vi.setSystemTime(0);
  expect([msSince(start), msUntil(end)]).toEqual([0, 1_000]);
  vi.advanceTimersByTime(1_500);
  expect([msSince(start), msUntil(end), msBetween(start, end)]).toEqual([1_500, -500, 1_000]);
  expect([start < end, monotonicNow() > end]).toEqual([true, true]);
});

it("all times are after LONG_AGO and before NEVER", () => {
  const now = monotonicNow();
  expect([LONG_AGO < now, now < NEVER, addMs(now, Infinity) === NEVER]).toEqual([true, true, true]);
  expect([earliest(now, LONG_AGO), earliest(LONG_AGO, now)]).toEqual([LONG_AGO, LONG_AGO]);
  expect([latest(now, NEVER), latest(NEVER, now)]).toEqual([NEVER, NEVER]);
});
