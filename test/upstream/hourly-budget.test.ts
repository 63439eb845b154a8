import { expect, it } from "vitest";
import { createLogger } from "../../src/observability/log.ts";
import { createHourlyBudget, type BudgetPart } from "../../src/upstream/budget/hourly-budget.ts";
import type { BudgetScope, Reservation } from "../../src/upstream/budget/ledger.ts";
import type { Redis } from "../../src/upstream/redis.ts";
import {
  describeInMemoryAndInRedis,
  describeWithRedis,
  eachWithRedis,
  isBack,
  setSeconds,
} from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";

const logLines: string[] = [];
const log = createLogger("warn", { write: (line) => void logLines.push(line) });
const newBudget = (redis?: Redis) =>
  createHourlyBudget({ name: "test", limit: 100, blockLimit: 40, redis, log });
type Budget = ReturnType<typeof newBudget>;

const PART: BudgetPart = { name: "small", limit: 50, blockLimit: 40 };
const STRICT: BudgetPart = { name: "strict", limit: 50, blockLimit: 10 };

/** Undefined for a reserved amount; else whose limit is reached. */
const take = async (...[budget, ...request]: [Budget, ...Parameters<Budget["reserve"]>]) =>
  (await budget.reserve(...request)).shortage?.scope;

/**
 * A block reserves an amount, or returns what it has not spent of its last one. `refusal` is absent for a reserved
 * amount; else it says whose limit is reached, and in how many seconds the amount fits.
 */
type Step = [
  second: number,
  block: string,
  amount: number | { unspent: number },
  refusal?: [scope: BudgetScope, retryAfterSeconds?: number] | undefined,
  part?: BudgetPart,
];

const CASES: [name: string, steps: Step[]][] = [
  [
    "limits each block to its part, and all blocks together, and says which",
    [
      [0, "a", 40],
      [0, "a", 1, ["CALLER", 3_660]],
      [0, "b", 39],
      [0, "b", 2, ["CALLER", 3_660]],
      [0, "b", 1],
      [0, "c", 21, ["SERVICE", 3_660]],
      [0, "c", 20],
      [0, "d", 1, ["SERVICE", 3_660]],
      [0, "a", 1, ["CALLER", 3_660]],
    ],
  ],
  ["names no time for an amount that never fits", [[0, "a", 41, ["SERVICE"]]]],
  [
    "counts what is spent for an hour and up to a minute more, and says when the amount fits",
    [
      [59, "a", 10],
      [119, "a", 30],
      // The first minute counts until minute 61 begins.
      [119, "a", 10, ["CALLER", 61 * 60 - 119]],
      [119, "a", 11, ["CALLER", 62 * 60 - 119]],
      [3_659, "a", 10, ["CALLER", 1]],
      [3_660, "a", 10],
      [3_660, "a", 1, ["CALLER", 60]],
      [7_320, "a", 40],
    ],
  ],
  [
    "gets back what is not spent",
    [
      [0, "a", 40],
      [0, "b", 40],
      [60, "a", { unspent: 40 }],
      [60, "b", { unspent: 10 }],
      [60, "b", { unspent: 5 }],
      [60, "b", 16, ["CALLER", 3_600]],
      [60, "b", 15],
      [60, "a", 40],
      [60, "c", 21, ["SERVICE", 3_600]],
    ],
  ],
  [
    "charges what is spent besides the reserved amount",
    [
      [0, "a", 30],
      [0, "a", { unspent: -5 }],
      [0, "a", 6, ["CALLER", 3_660]],
      [0, "a", 5],
      [0, "a", { unspent: -5 }],
      [3_659, "a", 1, ["CALLER", 1]],
      [3_660, "a", 40],
    ],
  ],
  [
    "ignores the return of an amount that no longer counts",
    [
      [0, "a", 40],
      [3_720, "b", 40],
      [3_720, "a", { unspent: 40 }],
      [3_720, "a", 40],
      [3_720, "c", 21, ["SERVICE", 3_660]],
    ],
  ],
  [
    "limits the reservations in a part, and lets the others use the rest",
    [
      [0, "a", 40, undefined, PART],
      [0, "b", 11, ["SERVICE", 3_660], PART],
      [0, "b", 10, undefined, PART],
      [0, "c", 40],
      [0, "d", 10],
      [0, "e", 1, ["SERVICE", 3_660]],
    ],
  ],
  [
    "limits a block in a part, and a part by what all have spent",
    [
      [0, "a", 11, ["SERVICE"], STRICT],
      [0, "a", 10, undefined, STRICT],
      [0, "a", 1, ["CALLER", 3_660], STRICT],
      [0, "a", 30],
      [0, "b", 40],
      [0, "c", 21, ["SERVICE", 3_660], PART],
      [0, "c", 20, undefined, PART],
    ],
  ],
];

describeInMemoryAndInRedis("an hourly budget", (getRedis) => {
  it.each(CASES)("%s", async (_name, steps) => {
    const redis = getRedis();
    const inMemory = newBudget();
    const reservations = new Map<string, Reservation>();
    for (const [second, block, amount, refusal, part] of steps) {
      setSeconds(second);
      if (typeof amount === "object") {
        const last = reservations.get(block)!;
        if (!last.shortage) last.release(amount.unspent);
        continue;
      }
      // Each time at a new replica, which has spent nothing itself, so that Redis decides.
      const budget = redis ? newBudget(redis) : inMemory;
      const reservation = await budget.reserve(block, amount, part);
      const [scope, retryAfterSeconds] = refusal ?? [];
      expect(reservation.shortage).toEqual(refusal && { scope, retryAfterSeconds });
      if (!refusal) reservations.set(block, reservation);
    }
  });

  it("shows how much of it, and of a part, all replicas have spent", async () => {
    const one = newBudget(getRedis());
    const other = getRedis() ? newBudget(getRedis()) : one;
    await one.reserve("a", 20);
    await one.reserve("b", 10, PART);
    await expect.poll(() => [other.usedPart(), other.usedPart(PART)]).toEqual([0.3, 0.2]);
  });
});

describeWithRedis("an hourly budget in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  eachWithRedis((...started) => {
    [server, redis] = started;
    logLines.length = 0;
  });
  const replica = () => newBudget(redis);
  const KEYS = "tributary:v2:budget:{test}:";

  it("is used by all replicas exactly: no more than the limit, and no less than fits", async () => {
    const replicas = Array.from({ length: 4 }, replica);
    const amounts = Array.from({ length: 400 }, (_, i) => 1 + ((i * 7) % 9));
    const refused = await Promise.all(
      amounts.map((amount, i) => take(replicas[i % 4]!, `block${i % 50}`, amount)),
    );
    const sum = amounts.reduce((total, amount, i) => total + (refused[i] ? 0 : amount), 0);
    expect(sum).toBeLessThanOrEqual(100);
    for (const [i, amount] of amounts.entries()) if (refused[i]) expect(sum + amount).toBeGreaterThan(100);

    const ones = await Promise.all(Array.from({ length: 400 }, (_, i) => take(replicas[i % 4]!, "x", 1)));
    expect(ones.filter((scope) => scope === undefined)).toHaveLength(100 - sum);
  });

  it("forgets blocks that have spent nothing, and all others in time", async () => {
    const [one, other] = [replica(), replica()];
    const reservation = await one.reserve("a", 1);
    if (!reservation.shortage) reservation.release(1);
    expect(await take(other, "b", 20, PART)).toBeUndefined();
    const keys: string[] = await server.command("KEYS", `${KEYS}*`);
    expect(keys.sort()).toEqual(
      ["all", "caller:b", "part:small", "part:small:caller:b"].map((name) => KEYS + name),
    );
    for (const key of keys) expect(await server.command("TTL", key)).toBeLessThanOrEqual(3_660);
  });

  it("lets no replica exceed the limits by itself when Redis has lost what was spent", async () => {
    const one = replica();
    expect(await take(one, "a", 40)).toBeUndefined();
    await server.command("FLUSHALL");
    expect(await take(one, "a", 1)).toBe("CALLER");
    expect([await take(one, "b", 40), await take(one, "c", 21), await take(one, "c", 20)]).toEqual([
      undefined,
      "SERVICE",
      undefined,
    ]);
    const keys: string[] = await server.command("KEYS", `${KEYS}*`);
    expect(keys.sort()).toEqual(["all", "caller:b", "caller:c"].map((name) => KEYS + name));
  });

  it("falls back to a quarter for each replica without Redis, less what it has spent, and says so once", async () => {
    const [one, other] = [replica(), replica()];
    await one.reserve("a", 8);
    await server.stop();
    expect([await take(one, "a", 3), await take(one, "a", 2)]).toEqual(["CALLER", undefined]);
    expect([await take(one, "b", 10), await take(one, "c", 10), await take(one, "c", 5)]).toEqual([
      undefined,
      "SERVICE",
      undefined,
    ]);
    expect([await take(other, "a", 10), await take(other, "b", 10), await take(other, "c", 5)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(await take(other, "d", 1)).toBe("SERVICE");
    expect([one.usedPart(), other.usedPart()]).toEqual([1, 1]);
    expect(logLines.map((line) => JSON.parse(line))).toEqual(
      Array(2).fill(expect.objectContaining({ level: 40, budget: "test", limit: 25, callerLimit: 10 })),
    );

    await server.start();
    await isBack(redis);
    expect(await take(one, "e", 40)).toBeUndefined();
    expect(await take(other, "f", 40)).toBeUndefined();
  });
});
