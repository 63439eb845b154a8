import { expect, it } from "vitest";
import { createBudget, TRUSTED_BLOCK, type Pool } from "../../src/fairness/budget.ts";
import type { Redis } from "../../src/store/redis.ts";
import {
  describeInMemoryAndInRedis,
  describeWithRedis,
  eachWithRedis,
  isBack,
  redis,
  server,
  setSeconds,
} from "../support/describe-with-redis.ts";

/** Holds 100 units; blocks hold 50, an IPv6 /32 and trusted callers hold 75. */
const POOL: Pool = {
  name: "all",
  all: 1,
  block: 1 / 2,
  wideBlock: 3 / 4,
  trusted: 3 / 4,
  largest: 1,
};
/** Holds 50 units. */
const SMALL: Pool = { ...POOL, name: "small", all: 1 / 2, block: 1 / 5 };
const FIRST = 5;
const newBudget = (redis?: Redis) =>
  createBudget({
    name: "test",
    limit: 600,
    pool: POOL,
    tiers: [{ first: FIRST, mayUse: 1 }],
    redis,
  });
type Budget = ReturnType<typeof newBudget>;

/** What a block gets of so much, and if that is not all, whose limit is reached. */
async function take(budget: Budget, block: string, wanted: number, pool = POOL) {
  const { amount, shortage } = await budget.take(block, wanted, { least: 1, pool });
  return shortage ? [amount, shortage.scope] : [amount];
}

describeInMemoryAndInRedis("a budget", (getRedis) => {
  type Step = [block: string, wanted: number, result: unknown[], pool?: Pool];
  const repeat = (count: number, step: (i: number) => Step) =>
    Array.from({ length: count }, (_, i) => step(i));
  const each = (steps: Step[]) => async () => {
    const inMemory = newBudget();
    for (const [block, wanted, result, pool] of steps) {
      // Each time at a new replica, which has taken nothing itself, so that Redis decides.
      const redis = getRedis();
      expect([block, await take(redis ? newBudget(redis) : inMemory, block, wanted, pool)]).toEqual(
        [block, result],
      );
    }
  };

  it(
    "limits each block to its share, and all together; half is left for blocks that have taken little",
    each([
      ["a", 60, [50, "CALLER"]],
      ["b", 60, [5, "CALLER"]],
      ["c", 5, [5]],
      ["d", 6, [5, "CALLER"]],
      ...repeat(7, (i) => [`e${i}`, 5, [5]]),
      ["f", 1, [0, "SERVICE"]],
    ]),
  );

  it(
    "gives trusted callers only the half that is for all",
    each([
      [TRUSTED_BLOCK, 60, [50, "CALLER"]],
      ["a", 6, [5, "CALLER"]],
    ]),
  );

  it(
    "gives the blocks of an IPv6 /32 together a share of their own",
    each([
      ["2001:db8:1::/48", 5, [5]],
      ...repeat(14, (i) => [`2001:db8:f${i}::/48`, 5, [5]]),
      ["2001:db8:2::/48", 5, [0, "CALLER"]],
      ["2001:db9:2::/48", 5, [5]],
    ]),
  );

  it(
    "counts amounts in a part of it in both, and leaves half of the whole to others",
    each([
      ["a", 30, [20, "CALLER"], SMALL],
      ["b", 30, [5, "CALLER"], SMALL],
      ...repeat(5, (i) => [`c${i}`, 5, [5], SMALL]),
      ["d", 5, [0, "SERVICE"], SMALL],
      ["e", 5, [5]],
      ["f", 20, [5, "CALLER"]],
    ]),
  );

  it("gets back what is not used, and charges what is used besides", async () => {
    const budget = newBudget(getRedis());
    const taken = await budget.take("a", 30);
    taken.giveBack(20);
    taken.giveBack(5);
    // Scripts run in the order in which they are sent.
    expect(await take(budget, "a", 60)).toEqual([45, "CALLER"]);
    setSeconds(3_600);
    const again = await budget.take("a", 30);
    again.giveBack(-40);
    expect(await take(budget, "a", 1)).toEqual([0, "CALLER"]);
    // The block's share is empty, not in debt: a unit flows in within 15 seconds.
    expect((await budget.take("a", 1)).shortage?.retryAfterSeconds).toBe(15);
    expect(await take(budget, "b", 1)).toEqual([1]);
  });

  it("names the seconds until an amount fits, and none if it never does", async () => {
    const budget = newBudget(getRedis());
    await budget.take("a", 50);
    // Of the block's 300 in an hour 250 flow in evenly.
    expect((await budget.take("a", 10)).shortage).toEqual({
      scope: "CALLER",
      retryAfterSeconds: 145,
    });
    expect((await budget.take("b", 51)).shortage).toEqual({ scope: "SERVICE" });
    expect((await budget.take(TRUSTED_BLOCK, 51)).shortage).toEqual({ scope: "SERVICE" });
  });

  it("shows what callers in no tier may still take of it, and of a part, at all replicas", async () => {
    const one = newBudget(getRedis());
    const other = getRedis() ? newBudget(getRedis()) : one;
    const percents = async () => {
      const parts = await Promise.all([other.leftRatio(), other.leftRatio(SMALL)]);
      return parts.map((left) => Math.round(left * 100));
    };
    expect(await percents()).toEqual([100, 100]);
    await one.take("a", 20);
    await one.take("b", 10, { pool: SMALL });
    setSeconds(performance.now() / 1_000 + 1);
    expect(await percents()).toEqual([40, 60]);
  });
});

describeWithRedis("a budget in Redis", () => {
  eachWithRedis();
  const replica = () => newBudget(redis);

  it("keeps its buckets in keys with a common hash tag, until they are full again", async () => {
    await replica().take("2001:db8:1::/48", 1, { pool: SMALL });
    const keys: string[] = await server.command("KEYS", "tributary:v2:bucket:*");
    expect(keys).toHaveLength(7);
    for (const key of keys) {
      expect(key).toContain(":{test}:");
      expect(await server.command("PTTL", key)).toBeGreaterThan(0);
    }
    expect(await server.command("PTTL", "tributary:v2:bucket:{test}:all")).toBeLessThanOrEqual(
      7_203,
    );
  });

  it("is a quarter for each replica without Redis, in all its outages of an hour", async () => {
    const [one, other] = [replica(), replica()];
    await one.take("a", 4);
    await server.stop();
    // Of 25, 12.5 are for all and for one block.
    expect((await take(one, "b", 50))[0]).toBe(12);
    expect((await take(other, "b", 50))[0]).toBe(12);
    // It fits as soon as Redis is back.
    expect((await other.take("c", 30)).shortage?.retryAfterSeconds).toBe(30);
    await server.start();
    await isBack(redis);
    expect(await take(replica(), "c", 30)).toEqual([30]);
    await server.stop();
    expect((await take(one, "b", 50))[0]).toBe(0);
  });
});
