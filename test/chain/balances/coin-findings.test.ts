import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createCoinFindings } from "../../../src/chain/balances/coin-findings.ts";

let now = 0;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  // In place: the cache has kept the object.
  vi.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function advance(ms: number): void {
  now += ms;
  vi.advanceTimersByTime(ms);
}

it("What a collect found of a coin is forgotten after an hour, or once another one distributes its fees", () => {
  const findings = createCoinFindings();
  const reasons = () => ["one", "other"].map((mint) => findings.reasonOf(mint, 10n));
  advance(1); // The cache treats a start time of 0 as unset.
  findings.found("one", "SHAREHOLDER_BLOCKED");
  findings.found("other", "BELOW_SHARING_MINIMUM", 10n);
  advance(3_599_000);
  expect(reasons()).toEqual(["SHAREHOLDER_BLOCKED", "BELOW_SHARING_MINIMUM"]);
  expect(findings.reasonOf("other", 11n)).toBeUndefined();
  findings.found("other", undefined);
  expect(reasons()).toEqual(["SHAREHOLDER_BLOCKED", undefined]);
  advance(2_000);
  expect(reasons()).toEqual([undefined, undefined]);
});

it("A coin whose sweep fails on the chain backs off, twice as long each time, until it succeeds", () => {
  const findings = createCoinFindings();
  const waits: number[] = [];
  advance(1);
  for (let i = 0; i < 3; i++) {
    // Failures at the same time count once.
    for (let j = 0; j < 2; j++) findings.backOff("coin");
    waits.push(findings.backsOffMs("coin"));
    advance(waits[i]!);
    expect(findings.backsOffMs("coin")).toBe(0);
  }
  expect(waits).toEqual([60_000, 120_000, 240_000]);
  findings.succeeded("coin");
  findings.backOff("coin");
  expect([findings.backsOffMs("coin"), findings.backsOffMs("other")]).toEqual([60_000, 0]);
});
