import { setImmediate } from "node:timers/promises";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";
import type { SocialAnswers } from "../../src/social/api-client.ts";
import { createAccountLookup } from "../../src/social/account-lookup.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { nameOf } from "../../src/social/account.ts";
import { NO_PROFILE } from "../../src/social/profile.ts";
import { SocialError } from "../../src/social/social-error.ts";

const defaults = {
  budget: createReadBudget({
    socialReadsPerHour: 0,
    socialApiUrl: new URL("http://network"),
  }),
  socialConcurrency: 4,
  socialQueueMax: 1000,
  socialTimeoutMs: 5_000,
  socialCacheSeconds: 300,
  socialApiUrl: new URL("http://network"),
};
const names = (count: number, prefix = "name") =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const answerAll = (keys: readonly string[]): SocialAnswers =>
  new Map(
    keys.map((key) => {
      const name = nameOf(key);
      return [key, { id: String(name.length), handle: name.toUpperCase(), profile: NO_PROFILE }];
    }),
  );
const results = (answers: readonly unknown[]) =>
  answers.map((answer) => (answer instanceof SocialError ? answer.failure.kind : "found"));

/** Lets the lookup queue its keys, and then the batcher send them at the end of the turn. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
/** Resolves after the time for which the batcher holds keys while other calls are in flight. */
const batchSent = () => vi.advanceTimersByTimeAsync(150);
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
  // The cache treats a start time of 0 as unset.
  vi.advanceTimersByTime(1);
});
afterEach(() => {
  vi.useRealTimers();
});

/** A network that keeps every call open until the test answers it. */
function heldNetwork() {
  const calls: {
    names: readonly string[];
    answer: (answers?: SocialAnswers) => void;
  }[] = [];
  const find = (keys: readonly string[]) =>
    new Promise<SocialAnswers>((resolve) => {
      calls.push({
        names: keys.map(nameOf),
        answer: (answers = answerAll(keys)) => {
          resolve(answers);
        },
      });
    });
  return { calls, client: { turn: () => undefined, find } };
}

describe("the account lookup", () => {
  it("caches accounts by the name that was looked up: an id for lookups by id, a handle for those by handle", async () => {
    const answer = (keys: readonly string[]): Promise<SocialAnswers> =>
      Promise.resolve(
        new Map(keys.map((key) => [key, { id: "7", handle: "creator", profile: NO_PROFILE }])),
      );
    const find = vi.fn(answer);
    const client = { turn: () => undefined, find };
    const lookup = createAccountLookup({ ...defaults, client });
    const asked = () => find.mock.calls.map(([keys]) => keys);
    await Promise.all([lookup.findByIds(["7"]), lookup.findByIds(["7"])]);
    expect(results(await lookup.findByIds(["7"]))).toEqual(["found"]);
    expect(asked()).toEqual([["7"]]);
    // Only a lookup of the handle says whose it is now.
    expect(lookup.cached("creator")).toBeUndefined();
    await lookup.findByHandles(["creator"]);
    expect(asked()).toEqual([["7"], ["@creator"]]);

    const other = createAccountLookup({ ...defaults, client });
    await other.findByHandles(["creator"]);
    expect(other.cachedById("7")).toBeUndefined();
  });
});

describe("the budget for reading accounts", () => {
  const caller = (addressBlock: string, signal = new AbortController().signal) => ({
    addressBlock,
    signal,
  });
  /** A lookup with a budget of which a caller gets seven reads at once. */
  function createLimited(options: Partial<Parameters<typeof createAccountLookup>[0]> = {}) {
    const { calls, client } = heldNetwork();
    const budget = createReadBudget({ ...defaults, socialReadsPerHour: 170 });
    const lookup = createAccountLookup({ ...defaults, client, budget, ...options });
    const find = async (block: string, ...handles: string[]) =>
      results(await lookup.findByHandles(handles, caller(block)));
    /** Looks up handles that the network finds, unless another answer is given. */
    const findAnswered = async (block: string, handles: string[], answers?: SocialAnswers) => {
      const { length } = calls;
      const found = find(block, ...handles);
      await turn();
      calls[length]?.answer(answers);
      return found;
    };
    return { lookup, calls, find, findAnswered };
  }

  it("refuses the handles that do not fit, and returns cached ones", async () => {
    const { calls, findAnswered } = createLimited();
    expect(await findAnswered("a", names(9))).toEqual([
      ...Array<string>(7).fill("found"),
      "budget-used",
      "budget-used",
    ]);
    expect(calls[0]!.names).toEqual(names(7));
    expect(await findAnswered("a", ["NAME0", "name7", "name2"])).toEqual([
      "found",
      "budget-used",
      "found",
    ]);
    expect(calls).toHaveLength(1);
    expect(await findAnswered("b", ["name7"])).toEqual(["found"]);
  });

  it("charges a handle that several callers request at once to the first of them", async () => {
    const { calls, find, findAnswered } = createLimited();
    const all = ["a", "b", "c"].map((block) => find(block, ...names(3)));
    await turn();
    const later = find("d", ...names(3));
    await turn();
    calls[0]!.answer();
    expect(await Promise.all([...all, later])).toEqual(Array(4).fill(Array(3).fill("found")));
    expect(calls).toHaveLength(1);
    expect(await findAnswered("a", names(5, "other"))).toEqual([
      ...Array<string>(4).fill("found"),
      "budget-used",
    ]);
    expect(await findAnswered("b", names(7, "another"))).toEqual(Array(7).fill("found"));
  });

  it("lets a caller whose reads are used up join one who pays", async () => {
    const metrics = createBudgetMetrics(new Registry());
    const refused = vi.spyOn(metrics, "refused");
    const budget = createReadBudget({ ...defaults, socialReadsPerHour: 170, metrics });
    const { calls, find, findAnswered } = createLimited({ budget });
    await findAnswered("a", names(7));
    const both = ["a", "b"].map((block) => find(block, "wanted"));
    await turn();
    calls.at(-1)!.answer();
    expect(await Promise.all(both)).toEqual([["found"], ["found"]]);
    expect(await find("a", ...names(2, "other"))).toEqual(["budget-used", "budget-used"]);
    const refusals = refused.mock.calls.filter(([, , count]) => count > 0);
    expect(refusals).toEqual([["social_reads", "CALLER", 2]]);
  });

  it("neither asks for nor charges a handle whose callers leave while they reserve it", async () => {
    const budget = createReadBudget({ ...defaults, socialReadsPerHour: 170 });
    const slow = Promise.withResolvers<undefined>();
    const { calls, find, lookup } = createLimited({
      budget: async (count, block) => {
        await slow.promise;
        return budget(count, block);
      },
    });
    const [first, second] = [new AbortController(), new AbortController()];
    const both = [
      lookup.findByHandles(["wanted"], caller("a", first.signal)),
      lookup.findByHandles(["wanted"], caller("b", second.signal)),
    ];
    await turn();
    first.abort(new Error("first left"));
    second.abort(new Error("second left"));
    slow.resolve(undefined);
    expect(await Promise.all(both)).toEqual([
      [new Error("first left")],
      [new Error("second left")],
    ]);
    await batchSent();
    expect(calls).toEqual([]);

    // What was reserved is back: the caller gets seven.
    const after = find("a", ...names(8));
    await turn();
    calls[0]!.answer();
    expect(await after).toEqual([...Array<string>(7).fill("found"), "budget-used"]);
  });

  it("is asked again for a handle whose payment failed, and callers hear of the failure", async () => {
    const failure = new Error("the budget failed");
    const budget = vi.fn(defaults.budget).mockRejectedValueOnce(failure);
    const client = {
      turn: () => undefined,
      find: (keys: readonly string[]) => Promise.resolve(answerAll(keys)),
    };
    const { lookup } = createLimited({ budget, client });
    const load = async () => lookup.findByHandles(["wanted"], caller("a"));
    await expect(load()).rejects.toBe(failure);
    expect(results(await load())).toEqual(["found"]);
  });
});

it("a handle whose turn does not come before the caller's deadline is refused as if the queue were full", async () => {
  const { calls, client } = heldNetwork();
  const never = () => new Promise(() => undefined);
  const lookup = createAccountLookup({
    ...defaults,
    client: { ...client, turn: never },
    socialTimeoutMs: 50,
  });
  const found = lookup.findByHandles(["waiting"]);
  await turn();
  await vi.advanceTimersByTimeAsync(50);
  expect(results(await found)).toEqual(["queue-full"]);
  expect(calls).toEqual([]);
});
