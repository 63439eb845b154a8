import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createFloors, type Floors } from "../../../src/chain/slots/floors.ts";

let newest: number;
let floors: Floors;
beforeEach(() => {
  vi.useFakeTimers();
  newest = 1_000;
  floors = createFloors({
    newestSlot: () => newest,
    takeSlot(slot) {
      newest = Math.max(newest, slot);
    },
  });
});
afterEach(() => {
  vi.useRealTimers();
});
/** Whether the amount of the wallet may be shown. */
const take = (slot: number, amount: number, wallet = "alice") =>
  floors.take(slot, [[wallet, [amount]]]);

it("amounts of an older slot than those shown are shown only if they are the same", () => {
  expect([
    take(900, 5),
    take(890, 4),
    take(890, 5),
    take(899, 6),
    take(900, 6),
    take(901, 7),
  ]).toEqual([true, false, true, false, true, true]);
});

it("a wallet has no other wallet's floor", () => {
  take(900, 5);
  expect(take(100, 1, "bob")).toBe(true);
});

it("a wallet is not shown with an older coin, and its amounts then do not count as shown", () => {
  const coin = (slot: number, amount: number, fees: number) =>
    floors.take(slot, [
      ["alice", [amount]],
      ["coin", [fees]],
    ]);
  expect([coin(900, 5, 1), coin(899, 5, 0)]).toEqual([true, false]);
  floors.take(950, [["coin", [2]]]);
  expect([coin(940, 6, 1), take(900, 5), take(899, 4)]).toEqual([false, true, false]);
});

it("after a collect nothing older is shown, also if it was shown before", () => {
  take(900, 5);
  floors.require("alice", 910);
  expect([take(905, 5), take(910, 0), take(909, 0), take(905, 5)]).toEqual([
    false,
    true,
    true,
    false,
  ]);
  expect([floors.landedSlotOf("alice"), floors.landedSlotOf("bob")]).toEqual([910, 0]);
});

it("what was shown after a collect stays when the collect is heard of", () => {
  take(920, 0);
  floors.require("alice", 910);
  expect([take(915, 0), take(915, 5)]).toEqual([true, false]);
});

it("a floor above the newest slot does not count", () => {
  take(900, 5);
  floors.require("alice", 990);
  newest = 800;
  expect([floors.landedSlotOf("alice"), take(790, 4), take(789, 3)]).toEqual([0, true, false]);
});

it("a slot that is announced counts as reached", () => {
  floors.require("alice", 2_000);
  expect([newest, floors.landedSlotOf("alice"), take(1_999, 5)]).toEqual([2_000, 2_000, false]);
});

it("a collect's slot that was too high is replaced by that of the next collect", () => {
  floors.require("alice", 2_000);
  newest = 1_000;
  floors.require("alice", 990);
  expect([floors.landedSlotOf("alice"), take(989, 5), take(990, 5)]).toEqual([990, false, true]);
});

it("a collect's slot that was too high leaves the floor of what was shown before", () => {
  take(900, 5);
  floors.require("alice", 990);
  newest = 950;
  expect([take(899, 4), take(899, 5), take(900, 6)]).toEqual([false, true, true]);
});

it("a slot that does not become the newest changes nothing", () => {
  const limited = createFloors({ newestSlot: () => 1_000, takeSlot: () => undefined });
  limited.require("alice", 900);
  limited.require("alice", 10 ** 15);
  expect([limited.landedSlotOf("alice"), limited.take(899, [["alice", [5]]])]).toEqual([
    900,
    false,
  ]);
});

it("a collect in slot 0, which is unknown, changes nothing", () => {
  const takeSlot = vi.fn();
  createFloors({ newestSlot: () => newest, takeSlot }).require("alice", 0);
  expect(takeSlot).not.toHaveBeenCalled();
  take(900, 5);
  floors.require("alice", 0);
  expect([take(899, 5), floors.landedSlotOf("alice")]).toEqual([true, 0]);
});

it("the newest announced slot is every wallet's floor for a minute after announcements may have been missed", () => {
  take(900, 5);
  floors.requireOfAll(950);
  expect([take(949, 5), take(949, 1, "bob"), take(950, 5), floors.landedSlotOf("bob")]).toEqual([
    false,
    false,
    true,
    950,
  ]);
  floors.requireOfAll(940);
  expect([take(949, 1, "bob"), take(950, 5)]).toEqual([false, true]);
  vi.advanceTimersByTime(60_000);
  expect([take(949, 1, "bob"), floors.landedSlotOf("bob")]).toEqual([true, 0]);
});

it("no wallet is shown older than before, however many others are looked up", () => {
  newest = 10_000;
  take(900, 5);
  // 5,000 new wallets a second, at 5 slots a second.
  for (let slot = 901; slot < 1_060; slot++)
    for (let i = 0; i < 1_000; i++) take(slot, 5, `wallet ${slot} ${i}`);
  expect([take(899, 4), take(899, 5)]).toEqual([false, false]);
  // What is 10 s old can be shown.
  expect([take(1_010, 6), take(1_010, 1, "new")]).toEqual([true, true]);
  // What was looked up last is known exactly.
  expect([take(1_058, 4, "wallet 1059 0"), take(1_058, 5, "wallet 1059 0")]).toEqual([false, true]);
});

it("a wallet that is looked up again and again keeps its floor", () => {
  for (let i = 0; i < 250_000; i++) {
    take(900, 5, `wallet ${i}`);
    if (i % 10_000 === 0) take(950, 5);
  }
  expect([take(940, 4), take(940, 5)]).toEqual([false, true]);
});

it("coins that do not exist need no floor, and displace none", () => {
  take(950, 5);
  for (let i = 0; i < 250_000; i++) floors.take(960, [[`coin ${i}`, []]]);
  expect([take(940, 4), take(940, 5), take(100, 1, "bob")]).toEqual([false, true, true]);
});

it("a coin that exists does not disappear again", () => {
  floors.take(950, [["coin", [1]]]);
  expect(floors.take(940, [["coin", []]])).toBe(false);
});

it("after a collect nothing older is shown or asked for, however many others are looked up", () => {
  floors.require("alice", 950);
  for (let i = 0; i < 250_000; i++) take(940, 5, `wallet ${i}`);
  expect([take(949, 5), floors.landedSlotOf("alice")]).toEqual([false, 950]);
});

it("what is forgotten requires no slot above the newest", () => {
  for (let i = 0; i < 250_000; i++) take(900, 5, `wallet ${i}`);
  newest = 800;
  expect([take(790, 4), floors.landedSlotOf("bob")]).toEqual([true, 0]);
});
