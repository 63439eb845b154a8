import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { blockKey, createFailures } from "../../../src/chain/balances/failures.ts";
import { CollectError } from "../../../src/chain/errors/collect-error.ts";
import { describeWithRedis, eachWithRedis, redis } from "../../support/describe-with-redis.ts";

let now = 0;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  now = 0;
  // In place: the cache has kept the object.
  vi.spyOn(performance, "now").mockImplementation(() => now);
  advance(1); // The cache treats a start time of 0 as unset.
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function advance(ms: number): void {
  now += ms;
  vi.advanceTimersByTime(ms);
}

const create = () => createFailures({ feePayer: "payer", redis: undefined });
const error = new CollectError({ kind: "not-started" });

it("Why a coin's fees were not distributed is forgotten after an hour, or once they are", () => {
  const failures = create();
  const reasons = () => ["one", "other"].map((mint) => failures.reasonOf(mint, 10n));
  failures.found("one", "SHAREHOLDER_BLOCKED");
  failures.found("other", "BELOW_SHARING_MINIMUM", 10n);
  advance(3_599_000);
  expect(reasons()).toEqual(["SHAREHOLDER_BLOCKED", "BELOW_SHARING_MINIMUM"]);
  expect(failures.reasonOf("other", 11n)).toBeUndefined();
  failures.found("other", undefined);
  expect(reasons()).toEqual(["SHAREHOLDER_BLOCKED", undefined]);
  advance(2_000);
  expect(reasons()).toEqual([undefined, undefined]);
});

it("What failed on the chain waits a minute, twice as long each time up to an hour, until it succeeds", () => {
  const failures = create();
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) {
    // Failures at the same time count once.
    for (let j = 0; j < 2; j++) failures.failedOnChain(["coin"]);
    waits.push(failures.leftMs("coin"));
    advance(waits[i]!);
    expect(failures.leftMs("coin")).toBe(0);
  }
  expect(waits.map((ms) => ms / 60_000)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  failures.succeeded(["coin"]);
  failures.failedOnChain(["coin", "other"]);
  expect(["coin", "other", "third"].map(failures.leftMs)).toEqual([60_000, 60_000, 0]);
});

it("A failed simulation is remembered for ten seconds, with its error", () => {
  const failures = create();
  failures.simulationFailed("coin", error);
  advance(9_999);
  expect([failures.errorOf("coin"), failures.errorOf("other")]).toEqual([error, undefined]);
  advance(1);
  expect([failures.errorOf("coin"), failures.leftMs("coin")]).toEqual([undefined, 0]);
});

it("A failed simulation between two failures on the chain does not shorten the next wait", () => {
  const failures = create();
  failures.failedOnChain(["coin"]);
  advance(60_000);
  failures.simulationFailed("coin", error);
  failures.failedOnChain(["coin"]);
  expect([failures.leftMs("coin"), failures.errorOf("coin")]).toEqual([120_000, undefined]);
});

it("What expired waits a minute, each time", () => {
  const failures = create();
  for (let i = 0; i < 2; i++) {
    failures.hold(["coin"]);
    expect(failures.leftMs("coin")).toBe(60_000);
    advance(60_000);
  }
  failures.failedOnChain(["coin"]);
  failures.hold(["coin"]);
  expect(failures.leftMs("coin")).toBe(120_000);
});

describeWithRedis("replicas that share a Redis", () => {
  eachWithRedis();

  it("hear of failures on the chain and of their ends, and not of simulations", async () => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    const one = createFailures({ feePayer: "payer", redis });
    const two = createFailures({ feePayer: "payer", redis });
    // The subscription may not be ready at first.
    await expect
      .poll(() => {
        one.succeeded(["coin"]);
        one.failedOnChain(["coin"]);
        return two.leftMs("coin");
      })
      .toBeGreaterThan(59_000);
    one.simulationFailed("unit", error);
    one.succeeded(["coin"]);
    await expect.poll(() => two.leftMs("coin")).toBe(0);
    expect(two.leftMs("unit")).toBe(0);
    one.hold(["disputed"], 150_000);
    await expect.poll(() => two.leftMs("disputed")).toBeGreaterThan(149_000);
  });
});

it("The operator sees a part of what backs off, how much there is, and no caller's block", () => {
  const failures = create();
  failures.hold(Array.from({ length: 150 }, (_, i) => blockKey(`address${i}`, "203.0.113.0/24")));
  failures.hold(["ended"], 1);
  advance(2);
  const { backingOff, backingOffCount } = failures.describe(100);
  expect([backingOff.length, backingOffCount]).toEqual([100, 150]);
  expect(backingOff[0]).toEqual({
    key: "address149",
    until: expect.any(String),
    after: "transaction",
  });
  expect(JSON.stringify(backingOff)).not.toContain("203.0.113");
});
