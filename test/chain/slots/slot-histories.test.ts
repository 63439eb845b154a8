import { afterEach, expect, it, vi } from "vitest";
import { createFloors } from "../../../src/chain/slots/floors.ts";
import { createTip, type Tip } from "../../../src/chain/slots/tip.ts";

/*
 * Random histories of endpoints against a simulated chain, in simulated time. `read` tries endpoints as the failover
 * does: the current ones first, all of them again until the timeout.
 */

const HISTORIES = 10_000;
const SLOTS_PER_MS = 2.5 / 1_000;
const FIRST_SLOT = 1_000_000;
const HISTORY_MS = 60_000;
const TIMEOUT_MS = 5_000;
const CATCH_UP_MS = 300;
const PROBE_AFTER_MS = 2_000;
/** What cannot be told from the truth: five seconds' worth of slots, and a lookup's own time. */
const SLACK = 14;
/** An answer is true if it was at most 15 s old when endpoints were last asked: an idle service makes no calls. */
const TRUE_SLOTS = 38 + 3;

type Random = () => number;
/** Mulberry32. */
function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Simulated {
  readonly kind: "right" | "behind" | "frozen" | "jumping" | "wrong once" | "silent";
  /** Its slot, or undefined while it does not answer. */
  readonly slot: () => number | undefined;
}

afterEach(() => {
  vi.restoreAllMocks();
});

let time = 0;
let tip: Tip;
// Shared, because it allocates its memory at the start; each history has accounts of its own.
const floors = createFloors({
  newestSlot: () => tip.value(),
  takeSlot(slot) {
    tip.raise(slot);
  },
});

function play(seed: number): string | undefined {
  const random = createRandom(seed);
  const between = (least: number, most: number) => least + random() * (most - least);
  const oneOf = <T>(some: readonly T[]) => some[Math.floor(random() * some.length)]!;
  time = 0;

  // The chain may be rolled back once.
  const rollbackAt = random() < 0.1 ? between(15_000, 40_000) : Infinity;
  const rolledBackBy = Math.floor(between(50, 2_000));
  const slotAt = (ms: number) =>
    FIRST_SLOT + Math.floor(ms * SLOTS_PER_MS) - (ms >= rollbackAt ? rolledBackBy : 0);
  const changesEvery = Math.floor(between(3, 60));
  const amountIn = (slot: number) => Math.floor(slot / changesEvery) + (time >= rollbackAt ? 0.5 : 0);

  function createEndpoint(kind: Simulated["kind"]): Simulated {
    const lag = Math.floor(between(0, 3));
    const right = () => slotAt(time) - lag;
    const fault = { from: between(0, HISTORY_MS), behindBy: Math.floor(between(60, 2_000)) };
    let isDone = false;
    const slot = {
      right,
      behind: () => right() - fault.behindBy,
      frozen: () => (time < fault.from ? right() : Math.min(right(), slotAt(fault.from) - lag)),
      jumping: () => right() - (random() < 0.2 ? fault.behindBy : 0),
      silent: () => (time < fault.from ? right() : undefined),
      "wrong once"() {
        if (isDone || time < fault.from) return right();
        isDone = true;
        return right() + oneOf([40, 400, 4_000, 10 ** 12]);
      },
    }[kind];
    return { kind, slot };
  }
  const others = ["behind", "frozen", "silent"] as const;
  // Two that are wrong in the same way support each other.
  let mayBeWrong = true;
  const kindOf = (i: number): Simulated["kind"] => {
    if (isWithRight) return i === 0 ? "right" : oneOf(others);
    const kind = oneOf(["right", "jumping", ...others, mayBeWrong ? "wrong once" : "right"] as const);
    mayBeWrong &&= kind !== "wrong once";
    return kind;
  };
  const isWithRight = random() < 0.5;
  const endpoints = Array.from({ length: 1 + Math.floor(random() * 3) }, (_, i) => createEndpoint(kindOf(i)));
  if (random() < 0.5) endpoints.reverse();

  tip = createTip(() => time);
  const shown = new Map<string, { slot: number; amount: number }>();

  function probe(): void {
    for (const endpoint of endpoints) {
      const slot = tip.silentMs(endpoint) >= PROBE_AFTER_MS ? endpoint.slot() : undefined;
      if (slot !== undefined) tip.report(endpoint, slot);
    }
  }

  /** The slot that was shown, or undefined if none was in time; or what is wrong. */
  function read(account: string): number | undefined | string {
    const endsAt = time + TIMEOUT_MS;
    for (let isFirst = true; time < endsAt; isFirst = false) {
      const inOrder = endpoints.toSorted((a, b) => Number(tip.isCurrent(b)) - Number(tip.isCurrent(a)));
      for (const endpoint of inOrder) {
        const slot = endpoint.slot();
        if (slot === undefined || tip.report(endpoint, slot) !== "current") continue;
        const amount = amountIn(slot);
        if (!floors.take(slot, [[account, [amount]]])) continue;
        const before = shown.get(account);
        if (before && slot < before.slot && amount !== before.amount && before.slot <= tip.value())
          return `shows ${amount} of slot ${slot} after ${before.amount} of slot ${before.slot}`;
        if (!before || slot >= before.slot || before.slot > tip.value()) shown.set(account, { slot, amount });
        if (slot > slotAt(time) + SLACK && time < rollbackAt)
          return `shows slot ${slot} at slot ${slotAt(time)}`;
        probe();
        return slot;
      }
      time += isFirst ? 1 : CATCH_UP_MS;
    }
    return undefined;
  }

  // The start.
  for (let i = 0; i < 2; i++)
    for (const endpoint of endpoints) {
      const slot = endpoint.slot();
      if (slot !== undefined) tip.report(endpoint, slot);
    }
  const accounts = ["a", "b", "c"].map((name) => `${name}${seed}`);
  let lastTrueAt = 0;
  let askedAt = 0;
  /** When a lookup first meets the chain that was rolled back. */
  let rolledBackAt = -Infinity;
  while (time < HISTORY_MS) {
    const pause = random() < 0.02 ? between(5_000, 15_000) : 0;
    time += pause + between(50, 2_500);
    lastTrueAt += pause;
    rolledBackAt += pause;
    if (rolledBackAt === -Infinity && time >= rollbackAt) rolledBackAt = time;
    const startedAt = time;
    const result = read(oneOf(accounts));
    const describe = () =>
      `history ${seed}, ${endpoints.map(({ kind }) => kind).join(", ")}, ms ${startedAt}`;
    if (typeof result === "string") return `${describe()}: ${result}`;
    const isTrue = result !== undefined && result >= slotAt(askedAt) - TRUE_SLOTS;
    askedAt = time;
    if (isTrue) lastTrueAt = time;
    const since = Math.max(lastTrueAt, rolledBackAt);
    if (isWithRight && !isTrue && startedAt - since > 10_000 && time - startedAt >= TIMEOUT_MS)
      return `${describe()}: no true answer since ${since}`;
    if (isWithRight && result !== undefined && !isTrue && startedAt - since > 10_000)
      return `${describe()}: slot ${result} is shown at slot ${slotAt(time)}`;
  }
  return undefined;
}

it(`in ${HISTORIES} random histories no balance goes back or is above the chain, and true ones come within 10 s`, () => {
  vi.spyOn(performance, "now").mockImplementation(() => time);
  const problems: string[] = [];
  for (let seed = 1; seed <= HISTORIES && problems.length < 5; seed++) {
    const problem = play(seed);
    if (problem !== undefined) problems.push(problem);
  }
  expect(problems).toEqual([]);
});
