import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRateLimit } from "../../../src/http/rate-limit/rate-limit.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const limit = () => createRateLimit({ max: 20, windowSeconds: 60 });
/** The seconds to wait, or undefined for an admitted request. */
const ask = async (rateLimit: ReturnType<typeof limit>, caller = "a", cost = 1, replacedAt?: number) => {
  const { refusal } = await rateLimit(caller, cost, replacedAt);
  if (refusal) expect(refusal.code).toBe("RATE_LIMITED");
  return refusal?.retryAfterSeconds;
};

describe("the rate limit", () => {
  it("lets exactly 20 of 1,000 concurrent requests pass", async () => {
    const rateLimit = limit();
    const answers = await Promise.all(Array.from({ length: 1000 }, () => ask(rateLimit)));
    expect(answers.filter((wait) => wait === undefined)).toHaveLength(20);
  });

  it("lets at most 20 requests pass in any 60 seconds, at any distribution of arrivals", async () => {
    const rateLimit = limit();
    const passedAt: number[] = [];
    let seed = 7;
    for (let i = 0; i < 2_000; i++) {
      seed = (seed * 48_271) % 2_147_483_647;
      vi.advanceTimersByTime(seed % 700);
      if ((await ask(rateLimit)) === undefined) passedAt.push(performance.now());
    }
    expect(passedAt.length).toBeGreaterThan(100);
    passedAt.forEach((at, i) => {
      const twentyLater = passedAt[i + 20];
      if (twentyLater !== undefined) expect(twentyLater - at).toBeGreaterThanOrEqual(60_000);
    });
  });

  it("returns the wait until the next request passes, rounded up to whole seconds", async () => {
    const rateLimit = limit();
    for (let i = 0; i < 20; i++) {
      await ask(rateLimit);
      vi.advanceTimersByTime(1_000);
    }
    expect(await ask(rateLimit)).toBe(40);
    vi.advanceTimersByTime(39_500);
    expect(await ask(rateLimit)).toBe(1);
    vi.advanceTimersByTime(500);
    expect(await ask(rateLimit)).toBeUndefined();
    expect(await ask(rateLimit)).toBe(1);
  });

  it("returns a wait of at most the window, and of one second just before a request passes", async () => {
    for (const start of [0.1, 123.456, 1_234.567, 7_777.7777]) {
      const rateLimit = limit();
      vi.setSystemTime(start);
      vi.advanceTimersByTime(start);
      await ask(rateLimit, "a", 20);
      expect(await ask(rateLimit)).toBe(60);
      vi.advanceTimersByTime(59_999);
      expect(await ask(rateLimit)).toBe(1);
    }
  });

  it("reports the remaining requests, and when more become available", async () => {
    const rateLimit = limit();
    const rateLimitHeader = async (cost: number) => (await rateLimit("a", cost)).rateLimitHeader;
    expect((await rateLimit("a", 1)).policyHeader).toBe('"address";q=20;w=60');
    vi.advanceTimersByTime(10_000);
    expect(await rateLimitHeader(4)).toBe('"address";r=15;t=50');
    expect(await rateLimitHeader(16)).toBe('"address";r=15;t=50');
    expect(await rateLimitHeader(17)).toBe('"address";r=15;t=60');
    expect(await rateLimitHeader(15)).toBe('"address";r=0;t=50');
    expect(await rateLimitHeader(1)).toBe('"address";r=0;t=50');
    vi.advanceTimersByTime(50_000);
    expect(await rateLimitHeader(1)).toBe('"address";r=0;t=10');
  });

  it("replaces a preliminary cost of one with the full cost", async () => {
    const rateLimit = limit();
    const { at } = await rateLimit("a", 1);
    expect(await ask(rateLimit, "a", 20, at)).toBeUndefined();
    expect(await ask(rateLimit)).toBe(60);

    const other = await rateLimit("b", 1);
    await ask(rateLimit, "b", 15);
    expect(await ask(rateLimit, "b", 6, other.at)).toBe(60);
    expect(await ask(rateLimit, "b", 5)).toBeUndefined();
  });

  it("admits a cost above one as a whole or not at all", async () => {
    const rateLimit = limit();
    expect([
      await ask(rateLimit, "a", 10),
      await ask(rateLimit, "a", 11),
      await ask(rateLimit, "a", 10),
    ]).toEqual([undefined, 60, undefined]);
    expect(await ask(rateLimit, "b", 21)).toBe(60);
    expect(await ask(rateLimit, "b", 20)).toBeUndefined();
  });

  it("does not extend the wait after a refused request", async () => {
    const rateLimit = limit();
    await ask(rateLimit, "a", 20);
    for (let i = 0; i < 59; i++) {
      vi.advanceTimersByTime(1_000);
      expect(await ask(rateLimit)).toBe(59 - i);
    }
    vi.advanceTimersByTime(1_000);
    expect(await ask(rateLimit)).toBeUndefined();
  });
});
