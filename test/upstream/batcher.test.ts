import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBatcher, type Load } from "../../src/upstream/batcher.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets calls end, and then the batcher send at the end of the turn. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
const keys = (count: number, prefix = "k") => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

type Options = Parameters<typeof createBatcher<string, string>>[0];
const defaults = { idOf: (key: string) => key, maxKeys: 10, maxCalls: 3, maxWaitMs: 50 };
/** Scarce calls whose turn comes at once, unless the test says otherwise. */
const withScarce = (options: Partial<NonNullable<Options["scarce"]>> = {}) => ({
  scarce: {
    turn: () => undefined,
    groupOf: () => "all",
    maxWaiting: Infinity,
    refuse: () => new Error("refused"),
    ...options,
  },
});

/** A batcher whose calls stay in flight until the test ends them. */
function createHeldBatcher(options: Partial<Options> = {}) {
  const calls: { keys: readonly string[]; end: () => void }[] = [];
  const batcher = createBatcher<string, string>({
    ...defaults,
    ...options,
    ask: (batch, answer) =>
      new Promise((resolve) => {
        calls.push({
          keys: batch,
          end: () => {
            batch.forEach((key, i) => {
              answer(i, `value of ${key}`);
            });
            resolve();
          },
        });
      }),
  });
  const load = async (key: string, request?: Load<string, string>) => {
    const [value] = await batcher.load([key], request);
    if (value instanceof Error) throw value;
    return value;
  };
  return { load, calls, sizes: () => calls.map((call) => call.keys.length), isPending: batcher.isPending };
}

describe("a batcher", () => {
  it("requests all keys of one turn in one call", async () => {
    const { load, sizes } = createHeldBatcher();
    for (const key of keys(4)) void load(key);
    expect(sizes()).toEqual([]);
    await turn();
    expect(sizes()).toEqual([4]);
  });

  it("sends each key at once when no call is in flight", async () => {
    const { load, calls, sizes } = createHeldBatcher();
    for (let i = 0; i < 3; i++) {
      const value = load(`k${i}`);
      await turn();
      expect(sizes()).toHaveLength(i + 1);
      calls[i]!.end();
      await value;
      await turn();
    }
  });

  it("keeps batching keys that arrive during a call, even after that call ends, to save calls", async () => {
    const { load, calls, sizes } = createHeldBatcher(withScarce());
    void load("first");
    await turn();
    for (const key of keys(4)) void load(key);
    calls[0]!.end();
    await turn();
    for (const key of keys(4, "later")) void load(key);
    await turn();
    expect(sizes()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(50);
    expect(sizes()).toEqual([1, 8]);
  });

  it("otherwise sends the batch when the last call ends", async () => {
    const { load, calls, sizes } = createHeldBatcher();
    void load("first");
    await turn();
    for (const key of keys(4)) void load(key);
    await turn();
    expect(sizes()).toEqual([1]);
    calls[0]!.end();
    await turn();
    expect(sizes()).toEqual([1, 4]);
  });

  it("sends a full batch without waiting, with at most maxCalls calls in flight", async () => {
    const { load, calls, sizes } = createHeldBatcher();
    void load("first");
    await turn();
    for (const key of keys(45)) void load(key);
    await turn();
    expect(sizes()).toEqual([1, 10, 10]);
    calls[0]!.end();
    await turn();
    expect(sizes()).toEqual([1, 10, 10, 10]);
  });

  it("holds no key longer than maxWaitMs", async () => {
    const { load, sizes } = createHeldBatcher();
    void load("first");
    await turn();
    void load("second");
    await turn();
    await vi.advanceTimersByTimeAsync(49);
    expect(sizes()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sizes()).toEqual([1, 1]);
  });

  it("requests a waiting key once for all callers, and a key in flight again unless it saves calls", async () => {
    for (const options of [{}, withScarce()]) {
      const { load, calls } = createHeldBatcher(options);
      const [one, two] = [load("a"), load("a")];
      await turn();
      const three = load("a");
      await turn();
      calls[0]!.end();
      expect(await Promise.all([one, two])).toEqual(["value of a", "value of a"]);
      await turn();
      expect(calls).toHaveLength("scarce" in options ? 1 : 2);
      calls.at(-1)!.end();
      expect(await three).toBe("value of a");
    }
  });

  it("requests keys that are objects once if they have the same id", async () => {
    const asked: { id: number; text: string }[] = [];
    const batcher = createBatcher<(typeof asked)[number], string>({
      ...defaults,
      idOf: ({ id }) => String(id),
      ask(batch, answer) {
        asked.push(...batch);
        batch.forEach(({ text }, i) => {
          answer(i, text);
        });
        return Promise.resolve();
      },
    });
    const items = ["one", "one again", "two"].map((text, i) => ({ id: i >> 1, text }));
    expect(await batcher.load(items)).toEqual(["one", "one", "two"]);
    expect(asked).toHaveLength(2);
  });

  it("rejects a caller who leaves, drops keys without callers, and serves the other callers", async () => {
    const { load, calls } = createHeldBatcher({ maxCalls: 1 });
    void load("first");
    await turn();
    const [leaving, staying] = [new AbortController(), new AbortController()];
    const gone = load("gone", { signal: leaving.signal });
    const shared = [
      load("shared", { signal: leaving.signal }),
      load("shared", { signal: staying.signal }),
    ] as const;
    await turn();
    leaving.abort(new Error("left"));
    await expect(gone).rejects.toThrow("left");
    await expect(shared[0]).rejects.toThrow("left");
    await expect(load("late", { signal: leaving.signal })).rejects.toThrow("left");
    calls[0]!.end();
    await turn();
    expect(calls[1]!.keys).toEqual(["shared"]);
    calls[1]!.end();
    expect(await shared[1]).toBe("value of shared");
  });

  it("requests a key again when all callers of the call in flight have left", async () => {
    const { load, calls } = createHeldBatcher(withScarce());
    const leaving = new AbortController();
    const gone = load("a", { signal: leaving.signal });
    await turn();
    leaving.abort(new Error("left"));
    await expect(gone).rejects.toThrow("left");
    const late = load("a");
    await vi.advanceTimersByTimeAsync(50);
    expect(calls).toHaveLength(2);
    calls[1]!.end();
    expect(await late).toBe("value of a");
  });

  it("refuses the newest keys beyond maxWaiting", async () => {
    const { load, calls } = createHeldBatcher({
      maxCalls: 1,
      ...withScarce({ maxWaiting: 2, refuse: () => new Error("full") }),
    });
    void load("first");
    await turn();
    const waiting = keys(4).map((key) => load(key).catch((error: unknown) => (error as Error).message));
    await turn();
    calls[0]!.end();
    await turn();
    await vi.advanceTimersByTimeAsync(50);
    calls[1]!.end();
    expect(await Promise.all(waiting)).toEqual(["value of k0", "value of k1", "full", "full"]);
  });

  it("refuses no key while another call can be made", async () => {
    const { load, sizes } = createHeldBatcher({
      maxCalls: 2,
      ...withScarce({ maxWaiting: 1, refuse: () => new Error("full") }),
    });
    void load("first");
    await turn();
    void load("second");
    await turn();
    expect(sizes()).toEqual([1]);
    void load("third");
    await turn();
    expect(sizes()).toEqual([1, 2]);
  });

  it("never combines keys of different groups in one call", async () => {
    const { load, calls } = createHeldBatcher(withScarce({ groupOf: (key) => key[0] }));
    for (const key of ["a1", "b1", "a2", "b2"]) void load(key);
    await turn();
    calls[0]!.end();
    await turn();
    await vi.advanceTimersByTimeAsync(50);
    expect(calls.map((call) => call.keys)).toEqual([
      ["a1", "a2"],
      ["b1", "b2"],
    ]);
  });

  it("returns each key's own answer, and the error of a failed call for all its keys", async () => {
    let isFirst = true;
    const batcher = createBatcher<string, string>({
      ...defaults,
      ask(_, answer) {
        if (!isFirst) return Promise.reject(new Error("all"));
        isFirst = false;
        answer(0, "value");
        answer(1, new Error("only b"));
        return Promise.resolve();
      },
    });
    const messages = async (...requested: string[]) =>
      (await batcher.load(requested)).map((answer) => (answer instanceof Error ? answer.message : answer));
    expect(await messages("a", "b", "c", "a")).toEqual(["value", "only b", "no answer for c", "value"]);
    expect(await messages("a", "b")).toEqual(["all", "all"]);
    expect(await messages()).toEqual([]);
  });

  it("returns an answer while the other keys of its call wait for theirs", async () => {
    const end = Promise.withResolvers<undefined>();
    const batcher = createBatcher<string, string>({
      ...defaults,
      async ask(batch, answer) {
        answer(batch.indexOf("early"), "value");
        await end.promise;
        throw new Error("no others");
      },
    });
    const late = batcher.load(["late"]);
    expect(await batcher.load(["early"])).toEqual(["value"]);
    end.resolve(undefined);
    expect(await late).toEqual([new Error("no others")]);
  });

  it("returns the available answers to a caller who leaves, and the abort reason for the other keys", async () => {
    const batcher = createBatcher<string, string>({
      ...defaults,
      maxKeys: 1,
      ask([key], answer) {
        if (key === "never") return new Promise(() => undefined);
        answer(0, "value");
        return Promise.resolve();
      },
    });
    const leaving = new AbortController();
    const answers = batcher.load(["a", "never"], { signal: leaving.signal });
    await turn();
    leaving.abort(new Error("left"));
    expect(await answers).toEqual(["value", new Error("left")]);
    expect(await batcher.load(["a"], { signal: leaving.signal })).toEqual([new Error("left")]);
  });

  describe("when more keys wait than fit", () => {
    const loadFor = (
      load: ReturnType<typeof createHeldBatcher>["load"],
      addressBlock: string,
      count: number,
    ) =>
      Promise.all(
        keys(count, addressBlock).map((key) =>
          load(key, { addressBlock }).catch((error: unknown) => (error as Error).message),
        ),
      );

    it("puts an equal number of keys of each address block into the call, the oldest first", async () => {
      const { load, calls } = createHeldBatcher({ maxCalls: 1, ...withScarce() });
      void load("first");
      await turn();
      void loadFor(load, "a", 30);
      void loadFor(load, "b", 2);
      void loadFor(load, "c", 30);
      await turn();
      calls[0]!.end();
      await turn();
      expect(calls[1]!.keys).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "c2", "a3", "c3"]);
    });

    it("refuses the newest keys of the blocks with the most keys when the queue is full", async () => {
      const { load, calls } = createHeldBatcher({
        maxCalls: 1,
        ...withScarce({ maxWaiting: 10, refuse: () => new Error("full") }),
      });
      void load("first");
      await turn();
      const many = loadFor(load, "a", 100);
      await turn();
      const few = loadFor(load, "b", 4);
      await turn();
      calls[0]!.end();
      await turn();
      calls[1]!.end();
      expect(await few).toEqual(keys(4, "b").map((key) => `value of ${key}`));
      const answers = await many;
      expect(answers.slice(0, 6)).toEqual(keys(6, "a").map((key) => `value of ${key}`));
      expect(new Set(answers.slice(6))).toEqual(new Set(["full"]));
    });

    it("serves a key as early as any of its blocks would get it", async () => {
      const { load, calls } = createHeldBatcher({ maxCalls: 1, ...withScarce() });
      void load("first");
      await turn();
      void loadFor(load, "a", 30);
      void load("a29", { addressBlock: "b" });
      await turn();
      calls[0]!.end();
      await turn();
      expect(calls[1]!.keys).toEqual(["a0", "a29", ...keys(9, "a").slice(1)]);
    });
  });

  it("alternates between groups, so that many keys of one do not delay the other", async () => {
    const { load, calls } = createHeldBatcher({ maxCalls: 1, ...withScarce({ groupOf: (key) => key[0] }) });
    void load("a first");
    await turn();
    for (const key of keys(30, "a")) void load(key);
    void load("b");
    await turn();
    for (let i = 0; i < 3; i++) {
      calls[i]!.end();
      await turn();
    }
    expect(calls.map((call) => call.keys[0]![0])).toEqual(["a", "b", "a", "a"]);
  });

  describe("with turns", () => {
    /** A batcher whose turns come when the test says so. */
    function createPacedBatcher() {
      const turns: (() => void)[] = [];
      const takeTurn = () => new Promise<void>((resolve) => turns.push(resolve));
      return { ...createHeldBatcher(withScarce({ turn: takeTurn })), turns };
    }

    it("waits for the turn of each call, and sends all keys that have gathered by then", async () => {
      const { load, calls, turns, sizes } = createPacedBatcher();
      void load("first");
      await turn();
      for (const key of keys(5)) void load(key);
      await turn();
      await vi.advanceTimersByTimeAsync(1_000);
      expect([sizes(), turns.length]).toEqual([[], 1]);
      turns[0]!();
      await turn();
      expect([sizes(), turns.length]).toEqual([[6], 1]);

      for (const key of keys(15, "later")) void load(key);
      await turn();
      expect([sizes(), turns.length]).toEqual([[6], 2]);
      turns[1]!();
      await turn();
      calls[0]!.end();
      expect(sizes()).toEqual([6, 10]);
    });

    it("sends at once when no turn is needed", async () => {
      const { load, sizes } = createHeldBatcher(withScarce());
      void load("first");
      await turn();
      expect(sizes()).toEqual([1]);
    });

    it("keeps an unused turn for the next key", async () => {
      const { load, turns, sizes } = createPacedBatcher();
      const leaving = new AbortController();
      const gone = load("gone", { signal: leaving.signal });
      await turn();
      leaving.abort(new Error("left"));
      await expect(gone).rejects.toThrow("left");
      turns[0]!();
      await turn();
      void load("next");
      await turn();
      expect([sizes(), turns.length]).toEqual([[1], 1]);
    });

    it("refuses keys whose time is up instead of sending them", async () => {
      const { load, calls, turns } = createPacedBatcher();
      const late = load("late", { sendBefore: performance.now() + 100 });
      void load("in time", { sendBefore: performance.now() + 300 });
      const both = [100, 300].map((ms) => load("both", { sendBefore: performance.now() + ms }));
      await turn();
      const refused = expect(late).rejects.toThrow("refused");
      await vi.advanceTimersByTimeAsync(200);
      turns[0]!();
      await refused;
      expect(calls[0]!.keys).toEqual(["in time", "both"]);
      calls[0]!.end();
      expect(await Promise.all(both)).toEqual(["value of both", "value of both"]);
    });

    it("refuses a key when its caller leaves because its time is up, before its turn", async () => {
      const { load } = createPacedBatcher();
      const leaving = new AbortController();
      const both = [50, 200].map((ms) =>
        load(`sent before ${ms}`, { signal: leaving.signal, sendBefore: performance.now() + ms }).catch(
          String,
        ),
      );
      await turn();
      await vi.advanceTimersByTimeAsync(100);
      leaving.abort(new Error("left"));
      expect(await Promise.all(both)).toEqual(["Error: refused", "Error: left"]);
    });
  });

  it("passes a call's answer to the `onEnd` of the load that caused it, and none to the others'", async () => {
    const { load, calls, isPending } = createHeldBatcher({
      maxCalls: 1,
      ...withScarce({ maxWaiting: 1, refuse: () => new Error("full") }),
    });
    const ended: Record<string, unknown[]> = {};
    const start = (name: string, key: string, signal?: AbortSignal) => {
      const onEnd = (_key: string, answer?: string | Error) => (ended[name] ??= []).push(answer);
      return load(key, { onEnd, ...(signal && { signal }) }).catch(() => undefined);
    };
    expect(isPending("a")).toBe(false);
    void start("first", "a");
    await turn();
    void start("joined in flight", "a");
    const leaving = new AbortController();
    void start("left", "b", leaving.signal);
    expect([isPending("a"), isPending("b"), isPending("c")]).toEqual([true, true, false]);
    await turn();
    void start("refused", "c");
    await turn();
    leaving.abort(new Error("left"));
    void start("too late", "d", leaving.signal);
    expect(isPending("b")).toBe(false);
    calls[0]!.end();
    await turn();
    expect(ended).toEqual({
      first: ["value of a"],
      "joined in flight": [undefined],
      left: [undefined],
      refused: [undefined],
      "too late": [undefined],
    });
  });
});
