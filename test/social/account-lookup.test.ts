import { setImmediate } from "node:timers/promises";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";
import { createAccountLookup } from "../../src/social/account-lookup.ts";
import { nameOf, toHandleKey, type SocialAccount } from "../../src/social/account.ts";
import type { SocialAnswers } from "../../src/social/api-client.ts";
import { PROFILE } from "../../src/social/profile.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { SocialError } from "../../src/social/social-error.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
  // The cache treats a start time of 0 as unset.
  vi.advanceTimersByTime(1);
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets calls end or requests queue, and then the queue send at the end of the turn. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
/** Resolves after the time for which keys wait while other calls are in flight. */
const batchSent = () => vi.advanceTimersByTimeAsync(150);
const names = (count: number, prefix = "n") =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const accountOf = (handle: string): SocialAccount => ({
  id: "7",
  handle,
  profile: PROFILE.parse({}),
});

const socialApiUrl = new URL("http://network");
const createBudget = (socialReadsPerHour: number) =>
  createReadBudget({ socialReadsPerHour, socialApiUrl });

type Options = Partial<Parameters<typeof createAccountLookup>[0]> & {
  turn?: () => Promise<unknown>;
};

/** A lookup whose calls stay in flight until the test ends them. */
function createHeldLookup(options: Options = {}) {
  const calls: { names: readonly string[]; end: () => void }[] = [];
  const find = (keys: readonly string[]) =>
    new Promise<SocialAnswers>((resolve) => {
      calls.push({
        names: keys.map(nameOf),
        end: () => {
          resolve(new Map(keys.map((key) => [key, accountOf(nameOf(key))])));
        },
      });
    });
  const lookup = createAccountLookup({
    client: { turn: options.turn ?? (() => undefined), find },
    budget: createBudget(0),
    socialConcurrency: 3,
    socialQueueMax: Infinity,
    socialTimeoutMs: 1_000_000,
    socialCacheSeconds: 0,
    socialApiUrl,
    ...options,
  });
  /** Resolves to the handles of the answers, or to what is wrong. */
  async function loadAll(
    handles: readonly string[],
    addressBlock = "",
    signal = new AbortController().signal,
  ): Promise<string[]> {
    const answers = await lookup.find(handles.map(toHandleKey), { addressBlock, signal });
    return answers.map((answer) => {
      if (answer instanceof SocialError) return answer.failure.kind;
      return answer instanceof Error ? answer.message : answer.handle;
    });
  }
  /** Loads names, and ends their call. */
  async function loadAnswered(handles: readonly string[], addressBlock: string) {
    const { length } = calls;
    const answers = loadAll(handles, addressBlock);
    await turn();
    calls[length]?.end();
    return answers;
  }
  const load = async (name: string, addressBlock?: string, signal?: AbortSignal) =>
    (await loadAll([name], addressBlock, signal))[0]!;
  const sizes = () => calls.map((call) => call.names.length);
  return { lookup, load, loadAll, loadAnswered, calls, sizes };
}

function leavingCaller() {
  const controller = new AbortController();
  const abort = () => {
    controller.abort(new Error("left"));
  };
  return { signal: controller.signal, abort };
}

it("accounts are cached by the name that was looked up: an id for lookups by id, a handle for those by handle", async () => {
  const find = vi.fn((keys: readonly string[]) =>
    Promise.resolve(new Map(keys.map((key) => [key, accountOf("creator")]))),
  );
  const create = () =>
    createHeldLookup({ client: { turn: () => undefined, find }, socialCacheSeconds: 300 }).lookup;
  const caller = { addressBlock: "", signal: new AbortController().signal };
  const lookup = create();
  const asked = () => find.mock.calls.map(([keys]) => keys);
  await Promise.all([lookup.find(["7"], caller), lookup.find(["7"], caller)]);
  expect(await lookup.find(["7"], caller)).toEqual([accountOf("creator")]);
  expect(asked()).toEqual([["7"]]);
  // Only a lookup of the handle says whose it is now.
  expect(lookup.cached("@creator")).toBeUndefined();
  await lookup.find(["@creator"], caller);
  expect(asked()).toEqual([["7"], ["@creator"]]);

  const other = create();
  await other.find(["@creator"], caller);
  expect(other.cached("7")).toBeUndefined();
});

describe("the budget for reading accounts", () => {
  /** A lookup with a budget of which a caller gets seven reads at once. */
  const createLimited = (budget = createBudget(170)) =>
    createHeldLookup({ budget, socialCacheSeconds: 300 });
  const refusals = (count: number) => Array<string>(count).fill("budget-used");

  it("refuses the handles that do not fit, and returns cached ones", async () => {
    const { calls, loadAnswered } = createLimited();
    expect(await loadAnswered(names(9), "a")).toEqual([...names(7), ...refusals(2)]);
    expect(calls[0]!.names).toEqual(names(7));
    expect(await loadAnswered(["N0", "n7", "n2"], "a")).toEqual(["n0", "budget-used", "n2"]);
    expect(calls).toHaveLength(1);
    expect(await loadAnswered(["n7"], "b")).toEqual(["n7"]);
  });

  it("charges a handle that several callers request at once to the first of them", async () => {
    const { calls, loadAll, loadAnswered } = createLimited();
    const all = ["a", "b", "c"].map((block) => loadAll(names(3), block));
    await turn();
    const later = loadAll(names(3), "d");
    await turn();
    calls[0]!.end();
    expect(await Promise.all([...all, later])).toEqual(Array(4).fill(names(3)));
    expect(calls).toHaveLength(1);
    expect(await loadAnswered(names(5, "o"), "a")).toEqual([...names(4, "o"), ...refusals(1)]);
    expect(await loadAnswered(names(7, "p"), "b")).toEqual(names(7, "p"));
  });

  it("lets a caller whose reads are used up join one who pays", async () => {
    const metrics = createBudgetMetrics(new Registry());
    const refused = vi.spyOn(metrics, "refused");
    const budget = createReadBudget({ socialReadsPerHour: 170, socialApiUrl, metrics });
    const { calls, load, loadAnswered } = createLimited(budget);
    await loadAnswered(names(7), "a");
    const both = ["a", "b"].map((block) => load("wanted", block));
    await turn();
    calls.at(-1)!.end();
    expect(await Promise.all(both)).toEqual(["wanted", "wanted"]);
    expect(await loadAnswered(names(2, "other"), "a")).toEqual(refusals(2));
    expect(refused.mock.calls).toEqual(Array(2).fill(["social_reads", "CALLER"]));
  });

  it("neither asks for nor charges a handle whose callers leave while they reserve it", async () => {
    const budget = createBudget(170);
    const slow = Promise.withResolvers<undefined>();
    const { calls, load, loadAnswered } = createLimited(async (count, block) => {
      await slow.promise;
      return budget(count, block);
    });
    const leaving = leavingCaller();
    const both = ["a", "b"].map((block) => load("wanted", block, leaving.signal));
    await turn();
    leaving.abort();
    slow.resolve(undefined);
    expect(await Promise.all(both)).toEqual(["left", "left"]);
    await batchSent();
    expect(calls).toEqual([]);
    // What was reserved is back: the caller gets seven.
    expect(await loadAnswered(names(8), "a")).toEqual([...names(7), ...refusals(1)]);
  });

  it("is asked again for a handle whose payment failed, and callers hear of the failure", async () => {
    const failure = new Error("the budget failed");
    const budget = vi.fn(createBudget(0)).mockRejectedValueOnce(failure);
    const { load, loadAnswered } = createLimited(budget);
    await expect(load("wanted")).rejects.toBe(failure);
    expect(await loadAnswered(["wanted"], "a")).toEqual(["wanted"]);
  });
});

it("a handle whose turn does not come before the caller's deadline is refused as if the queue were full", async () => {
  const never = () => new Promise(() => undefined);
  const { calls, load } = createHeldLookup({ turn: never, socialTimeoutMs: 50 });
  const answer = load("waiting");
  await turn();
  await vi.advanceTimersByTimeAsync(50);
  expect(await answer).toBe("queue-full");
  expect(calls).toEqual([]);
});

it("a name is asked for again when all callers of the call in flight have left, and the calls are kept apart", async () => {
  const { load, calls } = createHeldLookup();
  const leaving = leavingCaller();
  const gone = load("a", "", leaving.signal);
  await turn();
  leaving.abort();
  expect(await gone).toBe("left");
  const late = load("a");
  await turn();
  calls[0]!.end();
  await turn();
  const joining = load("a");
  await turn();
  await batchSent();
  expect(calls).toHaveLength(2);
  calls[1]!.end();
  expect(await Promise.all([late, joining])).toEqual(["a", "a"]);
});

describe("when more names wait than fit", () => {
  /** A lookup with one call at once, which is in flight, and a call for the names that wait. */
  async function createBusyLookup(options: Options = {}) {
    const { calls, load } = createHeldLookup({ socialConcurrency: 1, ...options });
    void load("first");
    await turn();
    const loadFor = (addressBlock: string, count: number) =>
      Promise.all(names(count, addressBlock).map((name) => load(name, addressBlock)));
    async function nextCall() {
      await turn();
      calls[0]!.end();
      await turn();
      await batchSent();
      return calls[1]!;
    }
    return { load, loadFor, nextCall };
  }

  it("a call has an equal number of names of each address block, the oldest first", async () => {
    const { loadFor, nextCall } = await createBusyLookup();
    void loadFor("a", 300);
    void loadFor("b", 2);
    void loadFor("c", 300);
    const call = await nextCall();
    expect(call.names.slice(0, 8)).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "c2"]);
    expect(call.names.slice(-2)).toEqual(["a48", "c48"]);
  });

  it("the newest names of the blocks with the most names are refused when the queue is full", async () => {
    const { loadFor, nextCall } = await createBusyLookup({ socialQueueMax: 10 });
    const many = loadFor("a", 100);
    await turn();
    const few = loadFor("b", 4);
    (await nextCall()).end();
    expect(await few).toEqual(names(4, "b"));
    const answers = await many;
    expect(answers.slice(0, 6)).toEqual(names(6, "a"));
    expect(new Set(answers.slice(6))).toEqual(new Set(["queue-full"]));
  });

  it("a name is served as early as any of its blocks would get it", async () => {
    const { load, loadFor, nextCall } = await createBusyLookup();
    void loadFor("a", 300);
    void load("a299", "b");
    expect((await nextCall()).names.slice(0, 4)).toEqual(["a0", "a299", "a1", "a2"]);
  });
});

describe("with turns", () => {
  /** A lookup whose turns come when the test says so. */
  function createPacedLookup() {
    const turns: (() => void)[] = [];
    const takeTurn = () => new Promise<void>((resolve) => turns.push(resolve));
    return { ...createHeldLookup({ turn: takeTurn }), turns };
  }

  it("each call waits for its turn, and has all names that have gathered by then", async () => {
    const { load, calls, turns, sizes } = createPacedLookup();
    void load("first");
    await turn();
    for (const name of names(5)) void load(name);
    await turn();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([sizes(), turns.length]).toEqual([[], 1]);
    turns[0]!();
    await turn();
    expect([sizes(), turns.length]).toEqual([[6], 1]);

    for (const name of names(150, "later")) void load(name);
    await turn();
    expect([sizes(), turns.length]).toEqual([[6], 2]);
    turns[1]!();
    await turn();
    calls[0]!.end();
    expect(sizes()).toEqual([6, 100]);
  });

  it("an unused turn is kept for the next name", async () => {
    const { load, turns, sizes } = createPacedLookup();
    const leaving = leavingCaller();
    const gone = load("gone", "", leaving.signal);
    await turn();
    leaving.abort();
    expect(await gone).toBe("left");
    turns[0]!();
    await turn();
    void load("next");
    await turn();
    expect([sizes(), turns.length]).toEqual([[1], 1]);
  });
});
