import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createCallQuota } from "../../src/social/call-quota.ts";

const newQuota = (socialTimeoutMs = 5_000, count = 1) =>
  createCallQuota({ socialTimeoutMs, replicas: { count: () => count } });
const headers = (remaining: number, resetInSeconds: number, limit: string | null = "300") => ({
  "x-rate-limit-remaining": String(remaining),
  "x-rate-limit-reset": String(Math.ceil(Date.now() / 1000) + resetInSeconds),
  ...(limit !== null && { "x-rate-limit-limit": limit }),
});

describe("the network's call quota", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.setSystemTime(1_800_000_000_000);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Takes a turn, and lets time pass until it comes; returns the wait in ms. */
  async function wait(quota: ReturnType<typeof newQuota>): Promise<number> {
    const startedAt = performance.now();
    const turn = quota.turn();
    if (turn) await vi.advanceTimersToNextTimerAsync();
    await turn;
    return performance.now() - startedAt;
  }
  const waits = async (quota: ReturnType<typeof newQuota>, count: number) => {
    const all = [];
    for (let i = 0; i < count; i++) all.push(await wait(quota));
    return all;
  };

  it("delays no call before the first response, and none while four fifths of the calls are left", async () => {
    const quota = newQuota();
    expect(await waits(quota, 3)).toEqual([0, 0, 0]);
    quota.record("usernames", headers(241, 900));
    expect(await waits(quota, 3)).toEqual([0, 0, 0]);
  });

  it("spaces calls evenly over the time to the reset when fewer are left", async () => {
    const quota = newQuota();
    quota.record("usernames", headers(240, 720));
    expect(await waits(quota, 3)).toEqual([0, 3_000, 3_000]);
    vi.advanceTimersByTime(2_000);
    expect(await waits(quota, 2)).toEqual([1_000, 3_000]);
    vi.advanceTimersByTime(60_000);
    expect(await waits(quota, 2)).toEqual([0, 3_000]);
    quota.record("usernames", headers(100, 50));
    expect(await waits(quota, 3)).toEqual([3_000, 500, 500]);
  });

  it("uses the network's limit, or 300 if a response does not name it", async () => {
    const quota = newQuota();
    quota.record("usernames", headers(41, 900, "50"));
    expect(await waits(quota, 2)).toEqual([0, 0]);
    quota.record("usernames", headers(41, 41, null));
    expect(await waits(quota, 2)).toEqual([0, 1_000]);
  });

  it.each([
    [5_000, 4_000],
    [600_000, 5_000],
  ])(
    "with a timeout of %i ms lets no call wait longer than %i ms",
    async (socialTimeoutMs, longest) => {
      const quota = newQuota(socialTimeoutMs);
      quota.record("usernames", headers(1, 900));
      expect(await waits(quota, 3)).toEqual([0, longest, longest]);
      quota.record("usernames", headers(0, 900));
      expect(await waits(quota, 2)).toEqual([longest, longest]);
    },
  );

  it("delays calls of both kinds while either is scarce, because they share turns", async () => {
    const quota = newQuota();
    quota.record("ids", headers(10, 20));
    quota.record("usernames", headers(299, 900));
    expect(await waits(quota, 2)).toEqual([0, 2_000]);
    expect(quota.leftRatio()).toBeCloseTo(10 / 300);
  });

  it("gives each replica an equal part of the calls", async () => {
    const quota = newQuota(10_000, 4);
    quota.record("usernames", headers(300, 300, "1000"));
    expect(await waits(quota, 3)).toEqual([0, 4_000, 4_000]);
  });

  it("forgets the old window at its reset", async () => {
    const quota = newQuota();
    quota.record("usernames", headers(1, 10));
    expect(quota.leftRatio()).toBeCloseTo(1 / 300);
    await wait(quota);
    vi.advanceTimersByTime(10_000);
    expect([await waits(quota, 3), quota.leftRatio()]).toEqual([[0, 0, 0], 1]);
  });

  it.each([
    [{ "x-rate-limit-remaining": "1" }],
    [{ "x-rate-limit-remaining": "few", "x-rate-limit-reset": "1800000900" }],
    [{ "x-rate-limit-remaining": "1", "x-rate-limit-reset": "1799999999" }],
  ])("ignores headers that it cannot use: %j", async (unusable) => {
    const quota = newQuota();
    quota.record("usernames", unusable);
    expect(await waits(quota, 2)).toEqual([0, 0]);
  });

  it("treats a reset more than 15 minutes away as one in 15 minutes", async () => {
    const quota = newQuota();
    quota.record("usernames", headers(225, 100_000));
    expect(await waits(quota, 2)).toEqual([0, 4_000]);
  });
});
