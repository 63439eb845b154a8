import { describe, expect, it } from "vitest";
import {
  capacityOf,
  decayed,
  drained,
  isAllowed,
  RULE_IN_LUA,
  secondsUntilAllowed,
} from "../../src/social/read-rule.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";

const FUNCTIONS = { capacityOf, drained, decayed, isAllowed };

/** With a limit of 10,000 the bucket holds 769.2 reads, and 9,230.8 an hour refill it. */
const CASES: [
  name: string,
  call: keyof typeof FUNCTIONS,
  args: (number | boolean)[],
  result: number | boolean,
][] = [
  ["a bucket holds a thirteenth of the limit", "capacityOf", [13_000], 1_000],
  ["a bucket holds one read, however small the limit", "capacityOf", [5], 1],
  ["an hour refills the rest of the limit", "drained", [13_000, 12_500, 3_600], 500],
  ["a bucket is never more than full", "drained", [13_000, 300, 3_600], 0],
  ["an hour refills half of a bucket for one read", "drained", [1, 1, 3_600], 0.5],
  ["a read counts 37% after an hour", "decayed", [100, 3_600], 100 / Math.E],
  ["a caller without reads may take the last read", "isAllowed", [10_000, 768, 0], true],
  ["nobody may take part of a read", "isAllowed", [10_000, 768.3, 0], false],
  ["a caller with two reads needs a tenth of the bucket", "isAllowed", [10_000, 690, 2], true],
  ["and gets nothing from less", "isAllowed", [10_000, 693, 2], false],
  ["a caller with ten reads needs more than half of it", "isAllowed", [10_000, 382, 10], true],
  ["and gets nothing from half", "isAllowed", [10_000, 385, 10], false],
  ["a trusted caller needs half, however much it has read", "isAllowed", [10_000, 384, 5_000, true], true],
  ["and gets nothing from less", "isAllowed", [10_000, 385, 0, true], false],
  ["a caller with 1,000 reads needs three quarters", "isAllowed", [10_000, 192, 1_000], true],
  ["and gets nothing from less", "isAllowed", [10_000, 193, 1_000], false],
  ["a caller with 1,999 reads needs a full bucket", "isAllowed", [10_000, 0, 1_999], true],
  ["a caller with 2,000 gets nothing", "isAllowed", [10_000, 0, 2_000], false],
  ["these parts are the same with a lower limit", "isAllowed", [130, 4.8, 10], false],
  ["and the small callers' reads too", "isAllowed", [130, 7.5, 2], true],
  ["with the lowest limit a caller gets the one read", "isAllowed", [1, 0, 0], true],
  ["and then has to wait", "isAllowed", [1, 1, 1], false],
];

describe("the rule of the budgets for reads", () => {
  it.each(CASES)("in TypeScript: %s", (_name, call, args, result) => {
    const actual = (FUNCTIONS[call] as (...args: (number | boolean)[]) => number | boolean)(...args);
    expect(actual).toEqual(typeof result === "number" ? expect.closeTo(result, 6) : result);
  });

  it("says after how many seconds a caller may read, if nobody else does", () => {
    // A read refills in 0.39 s.
    expect(secondsUntilAllowed(10_000, 769, 0)).toBe(1);
    // A tenth of the bucket refills in 30 s.
    expect(secondsUntilAllowed(10_000, 769, 2)).toBe(30);
    // With a full bucket 2,001 reads have to count less than 2,000: after half a thousandth of an hour, 1.8 s.
    expect(secondsUntilAllowed(10_000, 0, 2_001)).toBe(2);
    expect(secondsUntilAllowed(10_000, 0, 2_000 * Math.E)).toBe(3_601);
    expect(secondsUntilAllowed(1, 1, 1)).toBe(7_200);
  });
});

describeWithRedis("the rule of the budgets for reads, in Redis", () => {
  let server: RedisServer;
  eachWithRedis((started) => {
    server = started;
  });

  it("has the same results in Lua", async () => {
    const results = [];
    for (const [name, call, args] of CASES) {
      const text = await server.command(
        "EVAL",
        `${RULE_IN_LUA} return tostring(${call}(${args.join(",")}))`,
        0,
      );
      results.push([name, /^[\d.]/.test(text) ? Number(text) : text === "true"]);
    }
    expect(results).toEqual(
      CASES.map(([name, , , result]) => [
        name,
        typeof result === "number" ? expect.closeTo(result, 6) : result,
      ]),
    );
  });
});
