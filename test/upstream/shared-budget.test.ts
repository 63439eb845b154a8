import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLogger } from "../../src/observability/log.ts";
import { createSharedBudget, type BudgetPart } from "../../src/upstream/budget/shared-budget.ts";
import type { Redis } from "../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis, isBack } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import type { RedisServer } from "../support/redis-server.ts";

const logLines: string[] = [];
const log = createLogger("warn", { write: (line) => void logLines.push(line) });
const newBudget = (settings: Partial<Parameters<typeof createSharedBudget>[0]> = {}) =>
  createSharedBudget({ name: "test", limit: 100, callerLimit: 40, redis: undefined, log, ...settings });
type Budget = ReturnType<typeof newBudget>;

/** The reserved amount, or what is short. */
async function take(
  budget: Budget,
  caller: string,
  amount: number,
  more: { least?: number; part?: BudgetPart } = {},
) {
  const reservation = await budget.reserve({ caller, amount, ...more });
  return reservation.amount || reservation.shortage?.scope;
}

describe("a budget in memory", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.advanceTimersByTime(1);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("limits each caller to its share, and all callers together, and says which", async () => {
    const budget = newBudget();
    expect(await take(budget, "a", 40)).toBe(40);
    expect(await take(budget, "a", 1)).toBe("CALLER");
    expect(await take(budget, "b", 41)).toBe("CALLER");
    expect(await take(budget, "b", 40)).toBe(40);
    expect(await take(budget, "c", 21)).toBe("SERVICE");
    expect(await take(budget, "c", 20)).toBe(20);
    expect(await take(budget, "d", 1)).toBe("SERVICE");
    expect(await take(budget, "a", 1)).toBe("CALLER");
    expect(budget.usedPart()).toBe(1);
  });

  it("reserves what fits, down to the least amount that is useful", async () => {
    const budget = newBudget();
    expect(await budget.reserve({ caller: "a", amount: 50, least: 1 })).toMatchObject({
      amount: 40,
      shortage: { scope: "CALLER" },
    });
    expect(await take(budget, "b", 50, { least: 41 })).toBe("CALLER");
    expect(await take(budget, "b", 30, { least: 1 })).toBe(30);
    expect((await budget.reserve({ caller: "b", amount: 10, least: 1 })).shortage).toBeUndefined();
  });

  it("counts what is spent for an hour and up to a minute more, and says when the amount fits", async () => {
    const budget = newBudget();
    vi.advanceTimersByTime(59_000);
    await budget.reserve({ caller: "a", amount: 10 });
    vi.advanceTimersByTime(60_000);
    await budget.reserve({ caller: "a", amount: 30 });
    const wait = async (amount: number) =>
      (await budget.reserve({ caller: "a", amount })).shortage?.retryAfterSeconds;
    // The first minute counts until minute 61 begins. It is second 119.
    expect([await wait(10), await wait(11)]).toEqual([61 * 60 - 119, 62 * 60 - 119]);
    vi.advanceTimersByTime((61 * 60 - 119) * 1_000 - 2);
    expect([await wait(10), await take(budget, "a", 10)]).toEqual([1, "CALLER"]);
    vi.advanceTimersByTime(1_001);
    expect(await take(budget, "a", 10)).toBe(10);
  });

  it("gets back what a reservation does not use", async () => {
    const budget = newBudget();
    const reservations = await Promise.all(
      ["a", "b"].map((caller) => budget.reserve({ caller, amount: 40 })),
    );
    reservations[0]!.release(40);
    reservations[1]!.release(10);
    reservations[1]!.release(5);
    expect(budget.usedPart()).toBe(0.25);
    expect([await take(budget, "b", 16), await take(budget, "b", 15), await take(budget, "a", 40)]).toEqual([
      "CALLER",
      15,
      40,
    ]);
    vi.advanceTimersByTime(62 * 60_000);
    const old = await budget.reserve({ caller: "a", amount: 40 });
    vi.advanceTimersByTime(62 * 60_000);
    old.release(40);
    expect(await take(budget, "a", 41)).toBe("CALLER");
  });

  it("limits the reservations for a part, and lets the others use the rest", async () => {
    const budget = newBudget();
    const part = { name: "small", limit: 50, callerLimit: 40 };
    expect(await take(budget, "a", 40, { part })).toBe(40);
    expect(await take(budget, "b", 11, { part })).toBe("SERVICE");
    expect(await take(budget, "b", 10, { part })).toBe(10);
    expect([await take(budget, "c", 40), await take(budget, "d", 10)]).toEqual([40, 10]);
    expect(await take(budget, "e", 1)).toBe("SERVICE");

    const other = newBudget();
    expect(await take(other, "a", 11, { part: { ...part, callerLimit: 10 } })).toBe("CALLER");
    for (const caller of ["a", "b"]) await other.reserve({ caller, amount: 40 });
    expect(await take(other, "c", 21, { part })).toBe("SERVICE");
    expect(await take(other, "c", 20, { part })).toBe(20);
  });
});

describeWithRedis("a budget in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  eachWithRedis((...started) => {
    [server, redis] = started;
    logLines.length = 0;
  });
  const replica = () => newBudget({ redis });
  const KEYS = "tributary:v2:budget:{test}:";

  it("is shared by all replicas exactly: no more than the limit, and no less than fits", async () => {
    const replicas = Array.from({ length: 4 }, replica);
    const amounts = Array.from({ length: 400 }, (_, i) => 1 + ((i * 7) % 9));
    const reserved = await Promise.all(
      amounts.map(async (amount, i) => {
        const { amount: got, shortage } = await replicas[i % 4]!.reserve({
          caller: `caller${i % 50}`,
          amount,
        });
        return { amount, got, shortage };
      }),
    );
    const sum = reserved.reduce((total, { got }) => total + got, 0);
    expect(sum).toBeLessThanOrEqual(100);
    for (const { amount, shortage } of reserved) if (shortage) expect(sum + amount).toBeGreaterThan(100);
    expect(new Set(reserved.map(({ amount, got }) => got / amount))).toEqual(new Set([0, 1]));

    const ones = await Promise.all(Array.from({ length: 400 }, (_, i) => take(replicas[i % 4]!, "x", 1)));
    expect(ones.filter((one) => one === 1)).toHaveLength(100 - sum);
  });

  it("limits a caller at all replicas together, and says why and until when", async () => {
    const replicas = [replica(), replica()];
    const taken = await Promise.all(Array.from({ length: 100 }, (_, i) => take(replicas[i % 2]!, "a", 1)));
    expect(taken.filter((one) => one === 1)).toHaveLength(40);
    expect(taken.filter((one) => one === "CALLER")).toHaveLength(60);
    const { shortage } = await replica().reserve({ caller: "a", amount: 1 });
    expect(shortage!.retryAfterSeconds).toBeGreaterThan(3_500);
    expect(shortage!.retryAfterSeconds).toBeLessThanOrEqual(3_660);
    expect(await take(replica(), "b", 70, { least: 1 })).toBe(40);
    expect(await take(replica(), "c", 70, { least: 1 })).toBe(20);
    expect(await take(replica(), "c", 1)).toBe("SERVICE");
  });

  it("limits the reservations for a part at all replicas, and lets the others use the rest", async () => {
    const part = { name: "small", limit: 50, callerLimit: 40 };
    expect(await take(replica(), "a", 40, { part })).toBe(40);
    expect(await take(replica(), "b", 11, { part })).toBe("SERVICE");
    expect(await take(replica(), "b", 10, { part })).toBe(10);
    expect([await take(replica(), "c", 40), await take(replica(), "d", 10)]).toEqual([40, 10]);
  });

  it("gets back what a reservation does not use, and forgets callers who have used nothing", async () => {
    const [one, other] = [replica(), replica()];
    const [first, second] = [
      await one.reserve({ caller: "a", amount: 40 }),
      await one.reserve({ caller: "b", amount: 40 }),
    ];
    first.release(40);
    second.release(10);
    expect(await take(other, "b", 11)).toBe("CALLER");
    expect(await take(other, "b", 10)).toBe(10);
    expect(await take(other, "a", 40)).toBe(40);
    const third = await one.reserve({ caller: "c", amount: 1 });
    third.release(1);
    expect(await take(other, "d", 20)).toBe(20);
    const keys: string[] = await server.command("KEYS", `${KEYS}*`);
    expect(keys.sort()).toEqual(["all", "caller:a", "caller:b", "caller:d"].map((name) => KEYS + name));
    for (const key of keys) expect(await server.command("TTL", key)).toBeLessThanOrEqual(3_660);
  });

  it("counts a minute until all of it is an hour old", async () => {
    const minute = Math.floor((await server.command("TIME"))[0] / 60);
    await server.command("HSET", `${KEYS}all`, minute - 60, 60, minute - 61, 100);
    expect(await take(replica(), "a", 40)).toBe(40);
    const { shortage } = await replica().reserve({ caller: "b", amount: 1 });
    expect(shortage!.retryAfterSeconds).toBeLessThanOrEqual(60);
  });

  it("lets no replica exceed the limits by itself when Redis has lost what was spent", async () => {
    const one = replica();
    expect(await take(one, "a", 40)).toBe(40);
    await server.command("FLUSHALL");
    expect(await take(one, "a", 1)).toBe("CALLER");
    expect([await take(one, "b", 40), await take(one, "c", 21), await take(one, "c", 20)]).toEqual([
      40,
      "SERVICE",
      20,
    ]);
    const keys: string[] = await server.command("KEYS", `${KEYS}*`);
    expect(keys.sort()).toEqual(["all", "caller:b", "caller:c"].map((name) => KEYS + name));
  });

  it("shows how much all replicas have used", async () => {
    const [one, other] = [replica(), replica()];
    const part = { name: "small", limit: 50, callerLimit: 40 };
    await one.reserve({ caller: "a", amount: 20 });
    await one.reserve({ caller: "b", amount: 10, part });
    await eventually(() => {
      expect([other.usedPart(), other.usedPart(part)]).toEqual([0.3, 0.2]);
    });
  });

  it("falls back to a quarter for each replica without Redis, less what it has spent, and says so once", async () => {
    const [one, other] = [replica(), replica()];
    await one.reserve({ caller: "a", amount: 8 });
    await server.stop();
    expect([await take(one, "a", 3), await take(one, "a", 2)]).toEqual(["CALLER", 2]);
    expect([await take(one, "b", 10), await take(one, "c", 10), await take(one, "c", 5)]).toEqual([
      10,
      "SERVICE",
      5,
    ]);
    expect([await take(other, "a", 10), await take(other, "b", 10), await take(other, "c", 5)]).toEqual([
      10, 10, 5,
    ]);
    expect(await take(other, "d", 1)).toBe("SERVICE");
    expect([one.usedPart(), other.usedPart()]).toEqual([1, 1]);
    expect(logLines.map((line) => JSON.parse(line))).toEqual(
      Array(2).fill(expect.objectContaining({ level: 40, budget: "test", limit: 25, callerLimit: 10 })),
    );

    await server.start();
    await isBack(redis);
    expect(await take(one, "e", 40)).toBe(40);
    expect(await take(other, "f", 40)).toBe(40);
  });
});
