import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SocialAnswers } from "../../src/social/api-client.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createLoaders } from "../../src/resolvers/loaders.ts";
import { toCallerError } from "../../src/resolvers/to-caller-error.ts";
import { createAccountLookup } from "../../src/social/account-lookup.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { nameOf, toHandleKey } from "../../src/social/account.ts";
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
    fail: (error: Error) => void;
  }[] = [];
  const find = (keys: readonly string[]) =>
    new Promise<SocialAnswers>((resolve, reject) => {
      calls.push({
        names: keys.map(nameOf),
        answer: (answers = answerAll(keys)) => {
          resolve(answers);
        },
        fail: reject,
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

  it("caches that an id has no account for at most 60 s", async () => {
    const notFound = new SocialError({ kind: "not-found" });
    const find = vi.fn((ids: readonly string[]) =>
      Promise.resolve<SocialAnswers>(new Map(ids.map((id) => [id, notFound]))),
    );
    const lookup = createAccountLookup({ ...defaults, client: { turn: () => undefined, find } });
    const countCalls = async () => {
      expect(results(await lookup.findByIds(["7"]))).toEqual(["not-found"]);
      return find.mock.calls.length;
    };
    expect([await countCalls(), await countCalls()]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(await countCalls()).toBe(1);
    await vi.advanceTimersByTimeAsync(2);
    expect(await countCalls()).toBe(2);
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

  it("does not count accounts that do not exist, and calls that fail", async () => {
    const { calls, find, findAnswered } = createLimited();
    const missing = (handle: string) =>
      [toHandleKey(handle), new SocialError({ kind: "not-found" })] as const;
    for (let i = 0; i < 5; i++) {
      const handles = names(3, `nobody${i}`);
      expect(await findAnswered("a", handles, new Map(handles.map(missing)))).toEqual(
        Array(3).fill("not-found"),
      );
    }
    const failing = find("a", ...names(3));
    await turn();
    calls.at(-1)!.fail(new SocialError({ kind: "unreachable" }));
    await failing;
    expect(await findAnswered("a", names(5))).toEqual(Array(5).fill("found"));
    expect(await findAnswered("b", names(4, "b"))).toEqual(Array(4).fill("found"));
  });

  it("counts accounts that are returned but cannot be read, because the network charges for them", async () => {
    const { findAnswered } = createLimited();
    const unreadable = new Map(
      names(7).map((name) => [toHandleKey(name), new SocialError({ kind: "unreadable" })]),
    );
    expect(await findAnswered("a", names(7), unreadable)).toEqual(Array(7).fill("unreadable"));
    expect(await findAnswered("a", ["name0"])).toEqual(["budget-used"]);
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
    const { calls, find, findAnswered } = createLimited();
    await findAnswered("a", names(7));
    const both = ["a", "b"].map((block) => find(block, "wanted"));
    await turn();
    calls.at(-1)!.answer();
    expect(await Promise.all(both)).toEqual([["found"], ["found"]]);
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

  it("is asked again for a handle whose payment failed, and callers hear LOOKUP_FAILED of the failure", async () => {
    const failure = new Error("the budget failed");
    const budget = vi.fn(defaults.budget).mockRejectedValueOnce(failure);
    const client = {
      turn: () => undefined,
      find: (keys: readonly string[]) => Promise.resolve(answerAll(keys)),
    };
    const { lookup } = createLimited({ budget, client });
    const balances = { getBalances: () => Promise.resolve([]) };
    const load = async () =>
      createLoaders({ accountLookup: lookup, balances }, caller("a")).accountByHandle("wanted");
    const error: unknown = await load().catch((thrown: unknown) => thrown);
    expect(toCallerError(error, createLogger("silent"), new Set())).toMatchObject({
      code: "LOOKUP_FAILED",
      cause: failure,
    });
    expect(await load()).toMatchObject({ handle: "WANTED" });
  });

  it("counts accounts that are looked up by id", async () => {
    const find = (ids: readonly string[]) => Promise.resolve(answerAll(ids));
    const client = { turn: () => undefined, find };
    const { lookup } = createLimited({ client });
    const findIds = async (...ids: string[]) => results(await lookup.findByIds(ids, caller("a")));
    const ids = Array.from({ length: 8 }, (_, i) => String(i));
    expect(await findIds(...ids.slice(0, 6))).toEqual(Array(6).fill("found"));
    expect(await findIds(...ids)).toEqual([...Array<string>(7).fill("found"), "budget-used"]);
  });

  it("gets back what is reserved for a handle as soon as it is refused, though others of its request wait", async () => {
    const { find, lookup, calls } = createLimited({ socialConcurrency: 1, socialQueueMax: 1 });
    void find("z", "first");
    await turn();
    void find("a", "waiting", ...names(5, "refused"));
    await turn();
    expect(results(await lookup.findByHandles(names(4, "b"), caller("a")))).toEqual(
      Array(4).fill("queue-full"),
    );
    expect(calls).toHaveLength(1);
  });

  it("gets back what is reserved for handles that are never requested", async () => {
    const { calls, lookup, find, findAnswered } = createLimited({
      socialConcurrency: 1,
      socialQueueMax: 2,
    });
    const first = find("z", "first");
    await turn();
    const leaving = new AbortController();
    const left = lookup.findByHandles(["leaving", "refused"], caller("a", leaving.signal));
    await turn();
    const waiting = find("b", "waiting");
    await turn();
    leaving.abort(new Error("left"));
    expect(await left).toEqual([
      new Error("left"),
      expect.objectContaining({ failure: { kind: "queue-full" } }),
    ]);
    calls[0]!.answer();
    await first;
    await batchSent();
    calls[1]!.answer();
    expect([await waiting, calls[1]!.names]).toEqual([["found"], ["waiting"]]);
    expect(await findAnswered("a", names(5, "a"))).toEqual(Array(5).fill("found"));
    // Of its seven.
    expect(await findAnswered("a", names(3, "b"))).toEqual(["found", "found", "budget-used"]);
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
