import { beforeEach, describe, expect, it } from "vitest";
import { createLogger } from "../../src/observability/log.ts";
import { NO_PROFILE } from "../../src/social/profile.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { toAccountName } from "../../src/social/account.ts";
import { SocialError } from "../../src/social/social-error.ts";
import type { Redis } from "../../src/upstream/redis.ts";
import {
  describeInMemoryAndInRedis,
  describeWithRedis,
  eachWithRedis,
  isBack,
} from "../support/describe-with-redis.ts";
import { TRUSTED_BLOCK } from "../../src/upstream/budget/hourly-budget.ts";
import type { RedisServer } from "../support/redis-server.ts";

const logLines: string[] = [];
const log = createLogger("warn", { write: (line) => void logLines.push(line) });

/**
 * A budget that holds eleven reads and refills 2.2 a minute. A caller with n reads needs a part of n * (1/10 + 1/28.6) / 2
 * of it. So the first gets seven, because 5/11 > 0.405 before the last, and 4/11 < 0.472. The second gets three of the
 * other four, because 2/11 > 0.135 and 1/11 < 0.202.
 */
const newBudget = (settings: Partial<Parameters<typeof createReadBudget>[0]> = {}) =>
  createReadBudget({ readsPerHour: 143, apiUrl: new URL("http://network"), log, ...settings });
type Budget = ReturnType<typeof newBudget>;

const handles = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => `@${prefix}${i}`);
const account = (id: string, handle: string) => ({ id, handle, profile: NO_PROFILE });
/** The account of a key: its id is the number of letters and the last digit. */
const accountOf = (key: string) =>
  key.startsWith("@")
    ? account(`${key.charCodeAt(1)}${key.slice(2)}`, key.slice(1))
    : account(key, `id${key}`);
/** The name that has this key. */
const nameOf = (key: string) =>
  key.startsWith("@") ? toAccountName("handle", key.slice(1)) : toAccountName("id", key);
/** Lets what has ended be settled, and Redis run its scripts. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Reads the keys as far as they fit, and settles each with its account. Returns how many were read, or what is short. */
async function read(
  budget: Budget,
  block: string,
  keys: readonly string[],
  answer: (key: string) => unknown = accountOf,
) {
  const { paid, refusal, onEnd } = await budget(keys.map(nameOf), block);
  for (const name of paid) onEnd(name, answer(name.key) as ReturnType<typeof accountOf>);
  await settled();
  const failure = refusal?.failure;
  return paid.length || (failure?.kind === "budget-used" ? failure.scope : undefined);
}
const notFound = () => new SocialError({ kind: "not-found" });
const unreadable = () => new SocialError({ kind: "unreadable" });

/** Each step: who reads which keys, and how many of them, or whose limit refuses all. */
const CASES: [
  name: string,
  steps: [block: string, keys: string[], result: number | string, answer?: () => unknown][],
][] = [
  [
    "a caller gets a part, and the next one some of the rest, until the service has used its budget",
    [
      ["a", handles(9, "a"), 7],
      ["a", handles(1, "b"), "CALLER"],
      ["b", handles(4, "c"), 3],
      ["c", handles(1, "d"), 1],
      ["d", handles(1, "e"), "SERVICE"],
    ],
  ],
  [
    "accounts that do not exist use nothing",
    [
      ["a", handles(7, "a"), 7, notFound],
      ["b", handles(7, "b"), 7, notFound],
      ["c", handles(7, "c"), 7],
    ],
  ],
  [
    "a caller whose handles do not exist comes after one that has read nothing",
    [
      ["a", handles(5, "a"), 5, notFound],
      ["a", handles(5, "b"), 5, notFound],
      ["a", handles(5, "c"), 5, notFound],
      // The 15 count 1.5: before the last of these 6/11 > 6.5 * 0.0675, and then 5/11 < 7.5 * 0.0675.
      ["a", handles(7, "d"), 6],
    ],
  ],
  [
    "accounts that cannot be read are charged",
    [
      ["a", handles(7, "a"), 7, unreadable],
      ["a", handles(1, "b"), "CALLER"],
    ],
  ],
];

describeInMemoryAndInRedis("a budget for reads", (getRedis) => {
  it.each(CASES)("%s", async (_name, steps) => {
    const redis = getRedis();
    const inMemory = newBudget();
    const results = [];
    for (const [block, keys, , answer] of steps) {
      // Each time at a new replica, which has read nothing itself, so that Redis decides.
      const budget = redis ? newBudget({ redis }) : inMemory;
      results.push(await read(budget, block, keys, answer));
    }
    expect(results).toEqual(steps.map(([, , result]) => result));
  });

  it("counts an IPv6 /32 like a caller with an eighth of its reads", async () => {
    const budget = newBudget({ readsPerHour: 1_300, redis: getRedis() });
    for (let i = 1; i <= 20; i++) await read(budget, `2001:db8:${i}::/48`, handles(5, `x${i}x`));
    const [same, other] = ["2001:db8:ffff::/48", "2001:db9::/48"];
    expect(await read(budget, same, handles(5, "a"))).not.toBe(5);
    expect(await read(budget, other, handles(5, "b"))).toBe(5);
  });
});

describe("a budget for reads in memory", () => {
  it("counts an account each time, because it remembers none", async () => {
    const budget = newBudget();
    expect([await read(budget, "a", ["1"]), await read(budget, "a", ["1"])]).toEqual([1, 1]);
    expect(await read(budget, "a", handles(9, "a"))).toBe(5);
  });
});

describeWithRedis("a budget for reads in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  eachWithRedis((...started) => {
    [server, redis] = started;
  });
  beforeEach(() => {
    logLines.length = 0;
  });
  const replica = (settings = {}) => newBudget({ redis, ...settings });
  const KEYS = "tributary:v2:reads:{network}:";
  const count = async (field: "charged" | "returned") => {
    // After all scripts sent before.
    await isBack(redis);
    return Math.ceil(Number(await server.command("HGET", `${KEYS}used`, field)));
  };

  it("leaves half to others than trusted callers, whichever replica these ask", async () => {
    const replicas = [replica(), replica()];
    for (let i = 0; i < 6; i++)
      expect(await read(replicas[i % 2]!, TRUSTED_BLOCK, handles(1, `x${i}x`))).toBe(1);
    expect(await read(replica(), TRUSTED_BLOCK, handles(1, "y"))).not.toBe(1);
    expect(await read(replica(), "a", handles(1, "z"))).toBe(1);
  });

  it("is shared by all replicas: no more than it holds", async () => {
    const replicas = Array.from({ length: 4 }, () => replica());
    const taken = await Promise.all(
      Array.from({ length: 40 }, (_, i) => read(replicas[i % 4]!, `block${i}`, handles(1, `x${i}x`))),
    );
    expect(taken.filter((result) => result === 1)).toHaveLength(11);
  });

  it("counts an account once a day, by whichever name it is read, and then each time in a second budget", async () => {
    const [one, other] = [replica(), replica()];
    const answer = () => account("1", "Creator");
    expect(await read(one, "a", ["@creator"], answer)).toBe(1);
    for (let i = 0; i < 5; i++) {
      expect(await read(other, `b${i}`, ["1"], answer)).toBe(1);
      expect(await read(one, `c${i}`, ["@creator"], answer)).toBe(1);
    }
    expect([await count("charged"), await count("returned")]).toEqual([1, 11]);
    // The second budget holds 33 reads, of which 22 are left.
    const repeats = [];
    for (let i = 0; i < 23; i++) repeats.push(await read(one, `d${i}`, ["1"], answer));
    expect(repeats).toEqual([...Array<number>(22).fill(1), "SERVICE"]);
  });

  it("counts a second owner of a handle too", async () => {
    const budget = replica();
    await read(budget, "a", ["@creator"], () => account("1", "creator"));
    await read(budget, "a", ["@creator"], () => account("2", "creator"));
    expect(await count("charged")).toBe(2);
  });

  it("counts each read of an account beyond those that it remembers", async () => {
    const budget = replica({ maxRemembered: 1 });
    for (const id of ["1", "2", "1", "2"]) await read(budget, "a", [id]);
    expect(await count("charged")).toBe(3);
  });

  it("forgets the accounts when a UTC day begins, and all else in time", async () => {
    const budget = replica();
    await read(budget, "2001:db8:1::/48", ["1"]);
    await server.command("HINCRBY", `${KEYS}used`, "day", -1);
    await read(budget, "2001:db8:1::/48", ["1"]);
    expect(await count("charged")).toBe(2);
    const keys: string[] = await server.command("KEYS", `${KEYS}*`);
    expect(keys.sort()).toEqual(
      [`block:2001:db8:1::/48`, "block:2001:db8::/32", "today", "used"].map((name) => KEYS + name),
    );
    for (const key of keys) expect(await server.command("TTL", key)).toBeGreaterThan(0);
  });

  it("does not remember what was read on the day before", async () => {
    const budget = replica();
    const { onEnd } = await budget([nameOf("1")], "a");
    await server.command("HINCRBY", `${KEYS}used`, "day", 1);
    onEnd(nameOf("1"), accountOf("1"));
    await expect.poll(() => count("charged")).toBe(1);
    expect(await server.command("SCARD", `${KEYS}today`)).toBe(0);
  });

  it("lets no replica exceed the budget by itself when Redis has lost what was spent", async () => {
    const budget = replica();
    expect(await read(budget, "a", handles(7, "a"))).toBe(7);
    await server.command("FLUSHALL");
    expect(await read(budget, "a", handles(1, "b"))).toBe("CALLER");
    expect(await read(budget, "b", handles(4, "c"))).toBe(3);
    expect(await count("charged")).toBe(3);
  });

  it("falls back to a quarter for each replica without Redis, less what it has spent, and says so once", async () => {
    const [one, other] = [replica({ readsPerHour: 4 * 143 }), replica({ readsPerHour: 4 * 143 })];
    await read(one, "a", handles(4, "a"));
    await server.stop();
    // Of eleven, less the four: before the fifth read 3/11 > 0.27, and then 2/11 < 0.34.
    expect([await read(one, "b", handles(9, "b")), await read(other, "b", handles(9, "b"))]).toEqual([5, 7]);
    expect(logLines.map((line) => JSON.parse(line))).toEqual(
      Array(2).fill(expect.objectContaining({ level: 40, budget: "social_reads", limit: 143 })),
    );
    await server.start();
    await isBack(redis);
    expect(await read(other, "c", handles(10, "c"))).toBe(10);
  });
});
