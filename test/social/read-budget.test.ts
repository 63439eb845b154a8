import { expect, it } from "vitest";
import { PROFILE } from "../../src/social/profile.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { SocialError } from "../../src/social/social-error.ts";
import { describeInMemoryAndInRedis } from "../support/describe-with-redis.ts";

/**
 * 24 names at once, of which the callers who have read more than three leave eight, and then
 * twelve.
 */
const READS_PER_HOUR = 144;
type Budget = ReturnType<typeof createReadBudget>;

const account = { id: "1", handle: "creator", profile: PROFILE.parse({}) };
const notFound = () => new SocialError({ kind: "not-found" });
const unreadable = () => new SocialError({ kind: "unreadable" });
const timeout = () => new SocialError({ kind: "timeout" });

/** How many of the names a caller reads; each ends with this answer. */
async function read(
  budget: Budget,
  block: string,
  count: number,
  answer: () => typeof account | SocialError,
) {
  const { paid, refuse, settle } = await budget(count, block);
  if (paid < count) expect(refuse().failure.kind).toBe("budget-used");
  settle(Array.from({ length: paid }, answer));
  return paid;
}

describeInMemoryAndInRedis("the budget for reads of accounts", (getRedis) => {
  const newBudget = () =>
    createReadBudget({
      socialReadsPerHour: READS_PER_HOUR,
      socialApiUrl: new URL("http://network"),
      redis: getRedis(),
    });
  const found = () => account;

  it("gives a caller a part, others some of the rest, and those who have read nothing what is left", async () => {
    const budget = newBudget();
    // A block's own share at once is a sixth of 36.
    expect(await read(budget, "a", 100, found)).toBe(6);
    expect(await read(budget, "b", 100, found)).toBe(6);
    expect(await read(budget, "c", 100, found)).toBe(4);
    // Of the lower third each gets three, while there are as many.
    expect(await read(budget, "d", 100, found)).toBe(3);
    expect(await read(budget, "e", 3, found)).toBe(3);
    expect(await read(budget, "f", 3, found)).toBe(2);
    expect(await read(budget, "g", 1, found)).toBe(0);
  });

  it("does not count accounts that do not exist or were not read", async () => {
    const budget = newBudget();
    for (let i = 0; i < 20; i++)
      expect(await read(budget, "a", 5, i % 2 ? notFound : timeout)).toBe(5);
    expect(await read(budget, "a", 100, found)).toBe(6);
  });

  it("counts accounts that cannot be read, because the network charges for them, and an account each time", async () => {
    const budget = newBudget();
    expect([await read(budget, "a", 5, unreadable), await read(budget, "a", 5, found)]).toEqual([
      5, 1,
    ]);
  });
});

it("nothing is limited with SOCIAL_READS_PER_HOUR=0", async () => {
  const needs = {
    socialReadsPerHour: 0,
    socialApiUrl: new URL("http://network"),
  };
  expect(await read(createReadBudget(needs), "a", 10_000, () => account)).toBe(10_000);
});
