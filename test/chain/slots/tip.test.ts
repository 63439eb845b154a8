import { beforeEach, describe, expect, it } from "vitest";
import { createTip, type Tip } from "../../../src/chain/slots/tip.ts";

let nowMs: number;
let tip: Tip;
beforeEach(() => {
  nowMs = 0;
  tip = createTip(() => nowMs);
});
const later = (ms: number) => {
  nowMs += ms;
};
/** Reports a slot of the source; returns the verdict. */
const say = (source: string, slot: number) => tip.report(source, slot);
/** Both sources answer once a second, and advance by 2 or 3 slots a second. */
function goOn(seconds: number, slotOf: Record<string, number>): void {
  const from = nowMs;
  for (let i = 1; i <= seconds; i++) {
    later(1_000);
    for (const [source, slot] of Object.entries(slotOf))
      say(source, slot + Math.floor(((nowMs - from) / 1_000) * 2.5));
  }
}

describe("the newest slot", () => {
  it("is the first one that a source answers, if the second answer is near it", () => {
    expect([say("a", 1_000), say("a", 1_001), tip.value()]).toEqual(["current", "current", 1_001]);
  });

  it.each([
    ["higher", 1_700],
    ["lower", 300],
  ])("is unknown after a second answer that is %s, until a third one supports either", (_, second) => {
    say("a", 1_000);
    expect([say("a", second), tip.value()]).toEqual(["unsupported", 0]);
    expect([say("a", second + 1), tip.value()]).toEqual(["current", second + 1]);
  });

  it("grows without further support by what time explains, and five seconds' worth of slots", () => {
    say("a", 1_000);
    say("a", 1_000);
    expect(say("a", 1_013)).toBe("unsupported");
    expect(say("a", 1_012)).toBe("current");
    later(60_000);
    expect([say("a", 1_012 + 193), say("a", 1_012 + 192)]).toEqual(["unsupported", "current"]);
  });

  it("is higher at once if another source is there too, or if a lone source says it twice", () => {
    say("a", 1_000);
    say("b", 1_001);
    expect([say("a", 5_000), say("b", 5_001), tip.value()]).toEqual(["unsupported", "current", 5_001]);
    later(3_001);
    expect([say("a", 9_000), say("a", 9_001)]).toEqual(["unsupported", "current"]);
  });

  it("is not higher because a source is wrong once, or wrong again much later", () => {
    for (const source of ["a", "b"]) say(source, 1_000);
    expect([say("a", 1_400), say("b", 1_001), say("a", 1_002)]).toEqual([
      "unsupported",
      "current",
      "current",
    ]);
    goOn(20, { a: 1_002, b: 1_002 });
    expect([say("a", 1_450), tip.value()]).toEqual(["unsupported", 1_052]);
  });

  it("is that of the source that is further, if two sources go on in different places", () => {
    say("behind", 1_000);
    say("right", 2_200);
    goOn(1, { behind: 1_000, right: 2_200 });
    expect(tip.value()).toBe(0);
    goOn(2, { behind: 1_002, right: 2_202 });
    expect([say("right", 2_208), say("behind", 1_008)]).toEqual(["current", "behind"]);
  });

  it("is not that of a source that stands still, if another advances", () => {
    say("frozen", 2_000);
    say("right", 1_000);
    goOn(5, { right: 1_000 });
    later(6_000);
    say("frozen", 2_000);
    expect([say("right", 1_027), say("right", 1_028)]).toEqual(["current", "current"]);
  });

  it("is at least what is supported elsewhere", () => {
    say("a", 1_000);
    tip.raise(1_100);
    expect([tip.value(), say("a", 1_061), say("a", 1_062)]).toEqual([1_100, "behind", "current"]);
  });
});

describe("an endpoint", () => {
  it("is behind when its last slot is more than 15 s below the newest", () => {
    say("a", 1_000);
    say("b", 1_000);
    expect([tip.isCurrent("a"), tip.isCurrent("c")]).toEqual([true, true]);
    goOn(16, { b: 1_000 });
    expect([tip.value(), tip.isCurrent("a")]).toEqual([1_040, false]);
    expect([say("a", 1_001), say("a", 1_002), tip.isCurrent("a")]).toEqual(["behind", "current", true]);
  });

  it("is not current while its last slot has no support", () => {
    for (const source of ["a", "b", "a"]) say(source, 1_000);
    say("a", 5_000);
    expect([tip.isCurrent("a"), tip.isCurrent("b")]).toEqual([false, true]);
  });
});

describe("a newest slot that nobody reaches any more", () => {
  beforeEach(() => {
    say("a", 1_000);
    tip.raise(10 ** 9);
  });

  it("falls after 8 s to a source that advances", () => {
    goOn(8, { a: 1_000 });
    expect([say("a", 1_020), tip.value()]).toEqual(["behind", 10 ** 9]);
    goOn(1, { a: 1_020 });
    expect([say("a", 1_023), tip.value()]).toEqual(["current", 1_023]);
  });

  it("does not rise to it again because it is still stored elsewhere", () => {
    goOn(9, { a: 1_000 });
    for (const stored of [10 ** 9, 10 ** 9 - 1]) tip.raise(stored);
    expect([say("a", 1_023), tip.value()]).toEqual(["current", 1_023]);
    tip.raise(1_030);
    expect(tip.value()).toBe(1_030);
  });

  it("falls to the furthest of those that advance", () => {
    goOn(9, { a: 1_000, b: 3_000 });
    expect([tip.value() > 3_000, say("a", 1_023)]).toEqual([true, "behind"]);
  });

  it("falls after a minute to a source that stands still", () => {
    say("a", 1_000);
    later(59_999);
    expect(say("a", 1_000)).toBe("behind");
    later(1);
    expect([say("a", 1_000), tip.value()]).toEqual(["current", 1_000]);
  });
});
