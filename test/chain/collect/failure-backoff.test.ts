import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createFailureBackoff } from "../../../src/chain/collect/failure-backoff.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Length of the backoff in seconds, measured by checking once a second. */
function measureBackoff(backoff: ReturnType<typeof createFailureBackoff>): number {
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
  it("does not apply to an account without failures", () => {
    const backoff = createFailureBackoff();
    backoff.failed("b");
    expect(measureBackoff(backoff)).toBe(0);
  });

  it("doubles with each failure in a row, up to an hour", () => {
    const backoff = createFailureBackoff();
    const durations = Array.from({ length: 8 }, () => {
      backoff.failed("a");
      return measureBackoff(backoff);
    });
    expect(durations).toEqual([60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
  });

  it("ends with a success; the next failure starts at one minute", () => {
    const backoff = createFailureBackoff();
    backoff.failed("a");
    backoff.failed("a");
    backoff.succeeded("a");
    expect(measureBackoff(backoff)).toBe(0);
    backoff.failed("a");
    expect(measureBackoff(backoff)).toBe(60);
  });

  it("throws an error with the remaining time", () => {
    const backoff = createFailureBackoff();
    backoff.failed("a");
    vi.advanceTimersByTime(18_500);
    expect(() => {
      backoff.assertReady("a");
    }).toThrow(expect.objectContaining({ failure: { kind: "backing-off", leftMs: 41_500 } }));
  });
});
