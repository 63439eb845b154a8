import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  addMs,
  earliest,
  latest,
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
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
  expect([earliest(now, NEVER, LONG_AGO), latest(now, NEVER, LONG_AGO)]).toEqual([LONG_AGO, NEVER]);
});

it("a monotonic time used as a number, or a number used as a monotonic time, does not compile", () => {
  const uses = (time: MonotonicTime) => [
    // @ts-expect-error: a time of the wall clock is no monotonic time.
    (): MonotonicTime => Date.now(),
    // @ts-expect-error: a monotonic time is no number.
    (): number => time,
    // @ts-expect-error: the clocks cannot be compared.
    () => time < Date.now(),
    // @ts-expect-error: times are not subtracted: msBetween() does.
    () => Date.now() - time,
    // @ts-expect-error: no other clock's time is a monotonic time.
    () => msSince(Date.now()),
  ];
  expect(uses).toBeTypeOf("function");
});
