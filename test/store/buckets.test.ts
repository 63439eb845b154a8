import { expect, it, vi } from "vitest";
import { createBuckets, hourlyBucket, type Bucket, type Taken } from "../../src/store/buckets.ts";
import {
  describeInMemoryAndInRedis,
  describeWithRedis,
  eachWithRedis,
  redis,
  server,
  setSeconds,
} from "../support/describe-with-redis.ts";

const SECOND = 1_000;
/** Hold ten and twenty units; a unit flows in each second, or every two seconds. */
const A: Bucket = { name: "a", capacity: 10, burst: 10, msPerUnit: SECOND };
const B: Bucket = { name: "b", capacity: 20, burst: 20, msPerUnit: 2 * SECOND };
/** A taker who must leave half of `a`. */
const HALF_OF_A: Bucket = { ...A, burst: 5 };

/**
 * What is wanted of which buckets, what is taken, and the seconds until the rest, or one more,
 * would fit.
 */
type Step =
  | [
      second: number,
      buckets: Bucket[],
      wanted: number,
      taken: number,
      waitSeconds: number,
      options?: Options,
    ]
  /** Returns an amount of an earlier step. */
  | [second: number, step: number, unused: number];
interface Options {
  least?: number;
}

const CASES: [name: string, steps: Step[]][] = [
  [
    "a bucket starts full, refills evenly, and holds no more than its burst",
    [
      [0, [A], 10, 10, 0],
      [0, [A], 1, 0, 1],
      [3.5, [A], 3, 3, 0],
      [3.5, [A], 1, 0, 0.5],
      [4, [A], 1, 1, 0],
      [1_000, [A], 11, 0, Infinity],
      [1_000, [A], 10, 10, 0],
    ],
  ],
  [
    "all of an amount is taken or nothing; with `least` as much as fits",
    [
      [0, [A], 7, 7, 0],
      [0, [A], 4, 0, 1],
      [0, [A], 4, 0, 1, { least: 4 }],
      [0, [A], 4, 3, 1, { least: 1 }],
      [0, [A], 4, 0, 2, { least: 2 }],
    ],
  ],
  [
    "several buckets give the same amount, or none gives any, and the slowest says how long to wait",
    [
      [0, [A, B], 8, 8, 0],
      [0, [A, B], 5, 0, 3],
      [0, [B, A], 5, 2, 1, { least: 1 }],
      [0, [B], 10, 10, 0],
      [2, [A, B], 2, 0, 2],
      [2, [A, B], 2, 1, 2, { least: 1 }],
    ],
  ],
  [
    "a taker who must leave half gets nothing from the lower half, and one who need not gets it",
    [
      [0, [HALF_OF_A], 10, 5, 1, { least: 1 }],
      [0, [HALF_OF_A], 1, 0, 1],
      [0, [A], 4, 4, 0],
      [3, [HALF_OF_A], 1, 0, 2],
      [5, [HALF_OF_A], 1, 1, 0],
    ],
  ],
  [
    "what is not used is returned, if it has not flowed in meanwhile",
    [
      [0, [A, B], 8, 8, 0],
      [3, 0, 8],
      [3, [A], 10, 10, 0],
      [3, [A], 1, 0, 1],
      [3, [B], 20, 20, 0],
      [3, [B], 1, 0, 2],
    ],
  ],
  [
    "all that is not used is returned, while the bucket would not have been full",
    [
      [0, [A], 5, 5, 0],
      [0, [A], 4, 4, 0],
      [4, 1, 4],
      [4, [A], 10, 9, 1, { least: 1 }],
    ],
  ],
  [
    "an amount that others have since taken is not returned a second time",
    [
      [0, [A], 10, 10, 0],
      [10, [A], 10, 10, 0],
      [10, 0, 10],
      [10, [A], 1, 0, 1],
    ],
  ],
];

describeInMemoryAndInRedis("the law of the budgets", (getRedis) => {
  it.each(CASES)("%s", async (_name, steps) => {
    const buckets = createBuckets({ name: "test", redis: getRedis() });
    const answers: Taken[] = [];
    for (const step of steps) {
      setSeconds(step[0]);
      if (typeof step[1] === "number") {
        answers[step[1]]!.giveBack(step[2]);
        continue;
      }
      const [, of, wanted, taken, waitSeconds, { least = wanted } = {}] = step as Extract<
        Step,
        { length: 6 | 5 }
      >;
      const answer = await buckets.take(of, { wanted, least });
      answers.push(answer);
      expect([step, answer.amount]).toEqual([step, taken]);
      // Redis returns whole milliseconds.
      const { waitMs } = answer;
      const isExpected =
        waitMs === waitSeconds * SECOND || Math.abs(waitMs - waitSeconds * SECOND) < 2;
      expect([step, isExpected]).toEqual([step, true]);
    }
  });

  it("charging more than a bucket holds leaves it empty, not emptier", async () => {
    const buckets = createBuckets({ name: "test", redis: getRedis() });
    (await buckets.take([A], { wanted: 1, least: 1 })).giveBack(-1_000_000);
    const taken = async () => (await buckets.take([A], { wanted: 20, least: 1 })).amount;
    expect(await taken()).toBe(0);
    setSeconds(4);
    expect(await taken()).toBe(4);
  });

  it("a clock that was hours ahead for a moment leaves a bucket empty, not emptier", async () => {
    const buckets = createBuckets({ name: "test", redis: getRedis() });
    // Holds what flows in within ten minutes, so that no real time passes in the test.
    const bucket: Bucket = { name: "a", capacity: 600, burst: 600, msPerUnit: SECOND };
    const take = async (wanted: number) =>
      (await buckets.take([bucket], { wanted, least: 1 })).amount;
    setSeconds(7_200);
    expect(await take(300)).toBe(300);
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ["performance"] });
    expect(await take(1)).toBe(0);
    setSeconds(5);
    expect(await take(600)).toBe(5);
    setSeconds(605);
    expect(await take(601)).toBe(600);
  });

  it("no hour takes more than an hourly bucket's limit, whatever is taken and returned", async () => {
    const buckets = createBuckets({ name: "test", redis: getRedis() });
    const bucket = hourlyBucket("all", 1_200, 200);
    let seed = 7;
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    const open: { at: number; taken: Taken }[] = [];
    const spent: { at: number; amount: number }[] = [];
    for (let second = 0; second < 3 * 3_600; second += 1 + Math.floor(random() * 90)) {
      setSeconds(second);
      const wanted = 1 + Math.floor(random() * 250);
      open.push({ at: second, taken: await buckets.take([bucket], { wanted, least: 1 }) });
      // Held for a while, so that the bucket refills beside them; then most is returned and taken
      // again.
      while (open.length > 5) {
        const { at, taken } = open.splice(Math.floor(random() * open.length), 1)[0]!;
        const unused = random() < 0.7 ? taken.amount : 0;
        taken.giveBack(unused);
        spent.push({ at, amount: taken.amount - unused });
      }
    }
    const inHourFrom = (start: number) =>
      spent
        .filter(({ at }) => at >= start && at < start + 3_600)
        .reduce((sum, { amount }) => sum + amount, 0);
    const hours = spent.map(({ at }) => inHourFrom(at));
    expect(Math.max(...hours)).toBeLessThanOrEqual(1_200);
    expect(Math.max(...hours)).toBeGreaterThan(900);
  });
});

describeWithRedis("buckets in Redis", () => {
  eachWithRedis();

  it.each(["-1e308", "nan", "inf", "", "text", "9".repeat(400)])(
    "give what they hold at most, and can be used again, if someone has written '%s'",
    async (text) => {
      const key = "tributary:v2:bucket:{budget}:a";
      const take = () =>
        createBuckets({ name: "budget", redis }).take([A], { wanted: 10, least: 10 });
      await server.command("SET", key, text);
      const { amount, waitMs, slowest, giveBack } = await take();
      expect(amount).toBeOneOf([0, 10]);
      expect(waitMs).toBeGreaterThanOrEqual(0);
      expect(waitMs).toBeLessThanOrEqual(30 * SECOND);
      expect(slowest).toBe(A);
      await server.command("SET", key, text);
      giveBack(10);
      await take();
      expect(await server.command("PTTL", key)).toBeLessThanOrEqual(11 * SECOND);
      expect(await server.command("PTTL", key)).toBeGreaterThan(0);
    },
  );
});
