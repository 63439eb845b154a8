import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createPlausibilityCheck } from "../../../src/chain/rpc/plausibility-check.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a slot that an endpoint reports", () => {
  it("is possible while no endpoint has reported any", () => {
    expect(createPlausibilityCheck().isPossible(10 ** 12)).toBe(true);
  });

  it("may be ahead of the highest one by what time allows, with some slack", () => {
    const slots = createPlausibilityCheck();
    expect(slots.report(1_000)).toBe(true);
    expect(slots.isPossible(1_500)).toBe(true);
    expect(slots.isPossible(1_501)).toBe(false);
    vi.advanceTimersByTime(10_000);
    expect(slots.isPossible(1_700)).toBe(true);
    expect(slots.isPossible(1_701)).toBe(false);
  });

  it("does not change what is possible when it is impossible itself", () => {
    const slots = createPlausibilityCheck();
    slots.report(1_000);
    expect(slots.report(10 ** 12)).toBe(false);
    expect(slots.isPossible(10 ** 12 - 1)).toBe(false);
  });

  it("does not change what is possible when it is lower than the highest", () => {
    const slots = createPlausibilityCheck();
    slots.report(10 ** 6);
    expect(slots.report(1)).toBe(true);
    expect(slots.isPossible(10 ** 6 + 100)).toBe(true);
  });

  it("counts for a minute, so that neither a high nor a low one does harm for longer", () => {
    for (const wrong of [10 ** 12, 1]) {
      const slots = createPlausibilityCheck();
      slots.report(wrong);
      vi.advanceTimersByTime(60_001);
      expect(slots.report(10 ** 6)).toBe(true);
      expect(slots.isPossible(10 ** 12)).toBe(false);
    }
  });
});
