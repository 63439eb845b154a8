import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { CollectError } from "../../../src/chain/errors/collect-error.ts";
import { createFailedSimulations } from "../../../src/chain/units/failed-simulations.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("A failed simulation is remembered for ten seconds, or until the amount changes", () => {
  const failures = createFailedSimulations();
  const error = new CollectError({ kind: "not-started" });
  failures.failed("coin", 5n, error);
  vi.advanceTimersByTime(9_999);
  expect(failures.errorOf("coin", 5n)).toBe(error);
  expect([failures.errorOf("coin", 6n), failures.errorOf("other", 5n)]).toEqual([
    undefined,
    undefined,
  ]);
  vi.advanceTimersByTime(1);
  expect(failures.errorOf("coin", 5n)).toBeUndefined();
});
