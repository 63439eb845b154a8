import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createFailureBackoff } from "../../../src/chain/collect/failure-backoff.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** In seconds, found by asking at each of them. */
function backoffOf(backoff: ReturnType<typeof createFailureBackoff>): number {
  for (let seconds = 0; ; seconds++) {
    try {
      backoff.assertReady("a");
      return seconds;
    } catch {
      vi.advanceTimersByTime(1_000);
    }
  }
}

describe("the backoff of an account whose transactions fail", () => {
  it("does not apply to an account that has not failed", () => {
    const backoff = createFailureBackoff();
    backoff.failed("b");
    expect(backoffOf(backoff)).toBe(0);
  });

  it("doubles with each failure in a row, up to an hour", () => {
    const backoff = createFailureBackoff();
    const found = Array.from({ length: 8 }, () => {
      backoff.failed("a");
      return backoffOf(backoff);
    });
    expect(found).toEqual([60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
  });

  it("ends with a success, and starts again at a minute", () => {
    const backoff = createFailureBackoff();
    backoff.failed("a");
    backoff.failed("a");
    backoff.succeeded("a");
    expect(backoffOf(backoff)).toBe(0);
    backoff.failed("a");
    expect(backoffOf(backoff)).toBe(60);
  });

  it("throws an error that says how long it lasts", () => {
    const backoff = createFailureBackoff();
    backoff.failed("a");
    vi.advanceTimersByTime(18_500);
    expect(() => {
      backoff.assertReady("a");
    }).toThrow(expect.objectContaining({ failure: { kind: "backing-off", leftMs: 41_500 } }));
  });
});
