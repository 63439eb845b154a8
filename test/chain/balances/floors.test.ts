import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createFloors, type Floors } from "../../../src/chain/balances/floors.ts";
import type { Redis } from "../../../src/store/redis.ts";

const LIFE_MS = 60_000;

let floors: Floors;
/** Receives a message of Redis. */
let receive: (text: string) => void;
beforeEach(() => {
  vi.useFakeTimers();
  // Entries of a cache that are made at time 0 live for ever.
  vi.advanceTimersByTime(1);
  const redis = {
    subscribe(_: string, { onMessage }: { onMessage: typeof receive }) {
      receive = onMessage;
    },
  } as Redis;
  floors = createFloors({ feePayer: "payer", redis });
});
afterEach(() => {
  vi.useRealTimers();
});
/** Whether the amount of the wallet may be shown. */
const take = (slot: number, amount: number, wallet = "alice") =>
  floors.take(slot, [[wallet, String(amount)]]);

it("amounts of an older slot than those shown are shown only if they are the same", () => {
  const shown = [
    take(900, 5),
    take(890, 4),
    take(890, 5),
    take(899, 6),
    take(900, 6),
    take(901, 7),
  ];
  expect(shown).toEqual([true, false, true, false, true, true]);
});

it("a wallet has no other wallet's floor", () => {
  take(900, 5);
  expect(take(100, 1, "bob")).toBe(true);
});

it("a wallet is not shown with an older coin, and its amounts then do not count as shown", () => {
  const coin = (slot: number, amount: number, fees: number) =>
    floors.take(slot, [
      ["alice", String(amount)],
      ["coin", String(fees)],
    ]);
  expect([coin(900, 5, 1), coin(899, 5, 0)]).toEqual([true, false]);
  floors.take(950, [["coin", "2"]]);
  expect([coin(940, 6, 1), take(900, 5), take(899, 4)]).toEqual([false, true, false]);
});

it("a coin that exists does not disappear again", () => {
  floors.take(950, [["coin", "1"]]);
  expect(floors.take(940, [["coin", ""]])).toBe(false);
});

it("after a collect nothing older is shown or asked for, also if it was shown before", () => {
  take(900, 5);
  floors.require("alice", 910);
  const shown = [take(905, 5), take(910, 0), take(909, 0), take(905, 5)];
  expect(shown).toEqual([false, true, true, false]);
  expect([floors.landedSlotOf("alice"), floors.landedSlotOf("bob")]).toEqual([910, 0]);
});

it("what was shown after a collect stays when the collect is heard of", () => {
  take(920, 0);
  floors.require("alice", 910);
  expect([take(915, 0), take(915, 5)]).toEqual([true, false]);
});

it("an earlier collect, or one in slot 0, which is unknown, changes nothing", () => {
  take(900, 5);
  floors.require("alice", 910);
  floors.require("alice", 905);
  floors.require("alice", 0);
  floors.require("bob", 0);
  expect([floors.landedSlotOf("alice"), take(909, 5), take(1, 1, "bob")]).toEqual([
    910,
    false,
    true,
  ]);
});

it("what was shown, or collected, is a floor for a minute, so that no wrong slot is for ever", () => {
  take(10 ** 15, 5);
  floors.require("bob", 10 ** 15);
  vi.advanceTimersByTime(LIFE_MS - 1);
  expect([take(900, 4), take(900, 4, "bob"), floors.landedSlotOf("bob")]).toEqual([
    false,
    false,
    10 ** 15,
  ]);
  vi.advanceTimersByTime(2);
  expect([take(900, 4), take(900, 4, "bob"), floors.landedSlotOf("bob")]).toEqual([true, true, 0]);
});

it("a wallet that is looked up again and again keeps its floor", () => {
  take(900, 5);
  for (let seconds = 0; seconds < 120; seconds += 30) {
    vi.advanceTimersByTime(30_000);
    expect(take(900 + seconds, 5)).toBe(true);
  }
  vi.advanceTimersByTime(30_000);
  expect(take(980, 4)).toBe(false);
});

it("the newest collect is every wallet's floor for a minute after messages may have been missed", () => {
  take(900, 5);
  receive("950");
  const shown = [take(949, 5), take(949, 1, "bob"), take(950, 5)];
  expect([...shown, floors.landedSlotOf("bob")]).toEqual([false, false, true, 950]);
  // A Redis that lost its newest data.
  receive("940");
  expect([take(949, 1, "bob"), take(950, 5)]).toEqual([false, true]);
  vi.advanceTimersByTime(LIFE_MS);
  expect([take(949, 1, "bob"), floors.landedSlotOf("bob")]).toEqual([true, 0]);
});

it("100,000 wallets have floors: those that were looked up last, and no coin that does not exist", () => {
  take(950, 5, "first");
  take(950, 5);
  for (let i = 2; i < 100_000; i++) take(950, 5, `wallet ${i}`);
  for (let i = 0; i < 100_000; i++) floors.take(960, [[`coin ${i}`, ""]]);
  expect(take(940, 4, "first")).toBe(false);
  take(950, 5, "first");
  take(950, 5, "one more");
  expect([take(940, 4, "first"), take(940, 4, "wallet 2"), take(940, 4)]).toEqual([
    false,
    false,
    true,
  ]);
});
