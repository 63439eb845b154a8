import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRateLimit } from "../../src/http/rate-limit.ts";
import { ContractError } from "../../src/errors.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const limit = () => createRateLimit({ max: 20, windowSeconds: 60 });
/** The wait that a refusal names, or undefined for a request that passes. */
const ask = async (rateLimit: ReturnType<typeof limit>, caller = "a", cost = 1) => {
  try {
    await rateLimit.admit(caller, cost);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ContractError);
    expect((error as ContractError).code).toBe("RATE_LIMITED");
    return (error as ContractError).retryAfterSeconds;
  }
};

describe("the rate limit", () => {
  it("lets exactly 20 of 1,000 requests at once pass", async () => {
    const rateLimit = limit();
    const answers = await Promise.all(Array.from({ length: 1000 }, () => ask(rateLimit)));
    expect(answers.filter((wait) => wait === undefined)).toHaveLength(20);
  });

  it("lets no more than 20 pass in any 60 seconds, however they come", async () => {
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

  it("names the wait until the next request passes, in whole seconds, rounded up", async () => {
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

  it("never names more than the window, nor the whole of it when a request would pass in a moment", async () => {
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

  it("can be asked whether a request would pass, which takes none", async () => {
    const rateLimit = limit();
    await ask(rateLimit, "a", 19);
    for (let i = 0; i < 5; i++) rateLimit.assertAdmissible("a");
    await ask(rateLimit);
    expect(() => {
      rateLimit.assertAdmissible("a");
    }).toThrow("Try again in 60 seconds");
    vi.advanceTimersByTime(60_000);
    rateLimit.assertAdmissible("a");
  });

  it("takes several requests as a whole or not at all", async () => {
    const rateLimit = limit();
    expect([
      await ask(rateLimit, "a", 10),
      await ask(rateLimit, "a", 11),
      await ask(rateLimit, "a", 10),
    ]).toEqual([undefined, 60, undefined]);
    expect(await ask(rateLimit, "b", 21)).toBe(60);
    expect(await ask(rateLimit, "b", 20)).toBeUndefined();
  });

  it("does not lengthen the wait by what it refuses", async () => {
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
