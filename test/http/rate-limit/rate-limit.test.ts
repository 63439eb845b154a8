import { beforeEach, describe, expect, it, vi } from "vitest";
import { createRateLimit } from "../../../src/http/rate-limit/rate-limit.ts";
import { createMemoryWindow } from "../../../src/http/rate-limit/sliding-window.ts";
import type { Redis } from "../../../src/store/redis.ts";
import {
  describeInMemoryAndInRedis,
  describeWithRedis,
  eachWithRedis,
  redis,
  server,
  setSeconds,
} from "../../support/describe-with-redis.ts";

const newLimit = (redis?: Redis) => createRateLimit({ rateLimitMax: 20 }, redis);

type Answer = [result: "passes" | "is refused", left: number, seconds: number];
type Request = [second: number, cost: number, ...Answer];

/** Requests of one caller. */
const CASES: [name: string, requests: Request[]][] = [
  [
    "counts requests in a sliding window of 60 seconds",
    [
      [0, 1, "passes", 19, 60],
      [10, 4, "passes", 15, 50],
      [59.999, 15, "passes", 0, 1],
      [59.999, 1, "is refused", 0, 1],
      [60, 1, "passes", 0, 10],
      [60, 1, "is refused", 0, 10],
      [60, 5, "is refused", 0, 60],
      [70, 1, "passes", 3, 50],
      [200, 1, "passes", 19, 60],
    ],
  ],
  [
    "admits a cost as a whole, or takes one for the refusal and says when all of it fits",
    [
      [0, 1, "passes", 19, 60],
      [10, 4, "passes", 15, 50],
      [10, 16, "is refused", 14, 60],
      [20, 15, "is refused", 13, 50],
      [30, 13, "passes", 0, 30],
      [30, 1, "is refused", 0, 30],
      [100, 21, "is refused", 19, 60],
      [100, 19, "passes", 0, 60],
    ],
  ],
  [
    "does not extend the wait after a refused request",
    [
      [0, 20, "passes", 0, 60],
      [1, 1, "is refused", 0, 59],
      [30, 1, "is refused", 0, 30],
      [59.999, 1, "is refused", 0, 1],
      [60, 1, "passes", 19, 60],
    ],
  ],
  [
    "neither shortens the window nor shows a longer wait when a request comes between two milliseconds",
    [
      [1.2345677, 20, "passes", 0, 60],
      [1.2345677, 1, "is refused", 0, 60],
      [61.2335677, 1, "is refused", 0, 1],
      [61.2345676, 1, "is refused", 0, 1],
      [61.2355677, 1, "passes", 19, 60],
    ],
  ],
];

describeInMemoryAndInRedis("the rate limit", (getRedis) => {
  let limits: ReturnType<typeof newLimit>[];
  beforeEach(() => {
    limits = getRedis() ? [newLimit(getRedis()), newLimit(getRedis())] : [newLimit()];
  });
  /** A request at one of the replicas. */
  let next = 0;
  const ask: ReturnType<typeof newLimit> = (...request) =>
    limits[next++ % limits.length]!(...request);

  it.each(CASES)("%s", async (_name, requests) => {
    for (const [second, cost, result, left, seconds] of requests) {
      setSeconds(second);
      const { refusal, headers } = await ask("a", cost);
      expect([headers["ratelimit-policy"], headers.ratelimit]).toEqual([
        '"address";q=20;w=60',
        `"address";r=${left};t=${seconds}`,
      ]);
      expect([refusal?.code, refusal?.retryAfterSeconds]).toEqual(
        result === "passes" ? [undefined, undefined] : ["RATE_LIMITED", seconds],
      );
    }
  });

  it("lets exactly 20 of 1,000 concurrent requests pass, and reports the remaining ones", async () => {
    const decisions = await Promise.all(Array.from({ length: 1_000 }, async () => ask("a", 1)));
    const passed = decisions.filter(({ refusal }) => !refusal);
    expect(passed.map(({ headers }) => headers.ratelimit)).toEqual(
      Array.from({ length: 20 }, (_, i) => `"address";r=${19 - i};t=60`),
    );
    expect((await ask("b", 1)).refusal).toBeUndefined();
  });

  it("refuses a request that counts as more than one request may, and takes one for it", async () => {
    const rateLimit = createRateLimit({ rateLimitMax: 50, maxCost: 20 }, getRedis());
    expect(await rateLimit("big", 21)).toMatchObject({ remaining: 49, refusal: expect.any(Error) });
    expect(await rateLimit("big", 20)).toMatchObject({ remaining: 29, refusal: undefined });
    expect(await rateLimit("big", 20)).toMatchObject({ remaining: 9, refusal: undefined });
  });

  it("lets at most 20 requests pass in any 60 seconds, at any distribution of arrivals", async () => {
    const passedAt: number[] = [];
    let seed = 7;
    for (let i = 0; i < 1_000; i++) {
      seed = (seed * 48_271) % 2_147_483_647;
      vi.advanceTimersByTime((seed % 140_000) / 100);
      if (!(await ask("a", 1)).refusal) passedAt.push(performance.now());
    }
    expect(passedAt.length).toBeGreaterThan(100);
    passedAt.forEach((at, i) => {
      const twentyLater = passedAt[i + 20];
      if (twentyLater !== undefined) expect(twentyLater - at).toBeGreaterThanOrEqual(60_000);
    });
  });
});

describe("the rate limit in memory", () => {
  it("evicts the least recently admitted callers when it is full", () => {
    const reserve = createMemoryWindow({ max: 20, windowMs: 60_000 });
    reserve("first", 20);
    for (let i = 0; i < 99_999; i++) reserve(`caller${i}`, 1);
    expect(reserve("first", 1).isGranted).toBe(false);
    reserve("one more", 1);
    expect(reserve("first", 1).requests).toBe(1);
    expect(reserve("one more", 1).requests).toBe(2);
  });

  it("does not keep a caller longer for refused requests", () => {
    const reserve = createMemoryWindow({ max: 1, windowMs: 60_000 });
    reserve("refused", 1);
    reserve("second", 1);
    reserve("refused", 1);
    for (let i = 0; i < 99_999; i++) reserve(`later${i}`, 1);
    expect([reserve("second", 1).isGranted, reserve("refused", 1).isGranted]).toEqual([
      false,
      true,
    ]);
  });
});

describeWithRedis("the rate limit in Redis", () => {
  eachWithRedis();

  it("keeps a caller's list for one window, however many requests are refused", async () => {
    const rateLimit = newLimit(redis);
    await rateLimit("a", 20);
    const ttl = await server.command("PTTL", "tributary:v2:limit:a");
    await rateLimit("a", 1);
    expect(ttl).toBeLessThanOrEqual(60_001);
    expect(await server.command("PTTL", "tributary:v2:limit:a")).toBeLessThanOrEqual(ttl);
  });

  it("has none left, not fewer, after the limit has been lowered", async () => {
    await createRateLimit({ rateLimitMax: 25 }, redis)("a", 25);
    const { refusal, remaining, headers } = await newLimit(redis)("a", 1);
    expect([refusal?.code, remaining]).toEqual(["RATE_LIMITED", 0]);
    expect(headers.ratelimit).toContain('"address";r=0;');
  });

  const STRANGE_TIMES = ["-1e308", "nan", "inf", "", "text", "9".repeat(400)];

  it.each(STRANGE_TIMES)("decides as usual if someone has written the time '%s'", async (time) => {
    const key = "tributary:v2:limit:a";
    // As many as one, older or newer than others, or as many as are allowed.
    for (const times of [[time], [Date.now(), time], Array(20).fill(time)]) {
      await server.command("DEL", key);
      await server.command("RPUSH", key, ...(times as (string | number)[]));
      for (const cost of [1, 20, 21]) {
        const { remaining, resetSeconds } = await newLimit(redis)("a", cost);
        expect(remaining).toBeOneOf(Array.from({ length: 21 }, (_, i) => i));
        expect(resetSeconds).toBeOneOf(Array.from({ length: 60 }, (_, i) => i + 1));
      }
    }
  });

  it("drops requests from before its clock was set back", async () => {
    await server.command(
      "RPUSH",
      "tributary:v2:limit:a",
      ...Array<number>(20).fill(Date.now() + 3_600_000),
    );
    expect((await newLimit(redis)("a", 20)).refusal).toBeUndefined();
  });

  it("applies per replica during a Redis outage", async () => {
    const limits = [newLimit(redis), newLimit(redis)];
    await server.stop();
    const decisions = await Promise.all(
      limits.flatMap((rateLimit) => Array.from({ length: 50 }, async () => rateLimit("a", 1))),
    );
    expect(decisions.filter(({ refusal }) => !refusal)).toHaveLength(40);
  });
});
