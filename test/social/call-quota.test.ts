import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createCallQuota } from "../../src/social/call-quota.ts";
import type { Redis } from "../../src/store/redis.ts";
import { describeWithRedis, eachWithRedis, redis, server } from "../support/describe-with-redis.ts";

const newQuota = (redis?: Redis, socialTimeoutMs = 5_000) =>
  createCallQuota({
    socialApiUrl: new URL("http://network"),
    socialTimeoutMs,
    redis,
  });
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
      const quota = newQuota(undefined, socialTimeoutMs);
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

describeWithRedis("the network's call quota in Redis", () => {
  eachWithRedis();

  it("spaces the calls of all replicas together", async () => {
    const replicas = [newQuota(redis), newQuota(redis)];
    // An interval of 200 ms.
    for (const { record } of replicas) record("usernames", headers(300, 60, "1000"));
    const startedAt = performance.now();
    await Promise.all([0, 1, 0, 1].map(async (i) => replicas[i]!.turn()));
    // The first turn comes at once. The reset is rounded to seconds, and timers can be a
    // millisecond early.
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(3 * 195);
    expect(
      await server.command("PTTL", "tributary:v2:bucket:{calls:network}:turn"),
    ).toBeLessThanOrEqual(205);
  });

  it("without Redis is kept by each replica, by the headers of its own calls", async () => {
    const quota = newQuota(redis, 10);
    await server.stop();
    quota.record("usernames", headers(1, 800));
    await quota.turn();
    expect(quota.leftRatio()).toBeLessThan(0.1);
  });
});
