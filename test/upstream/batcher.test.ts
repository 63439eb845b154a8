import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBatcher } from "../../src/upstream/batcher.ts";

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
const keys = (count: number, prefix = "k") =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

const NO_OWNER = { blocks: [] };

type Options = Parameters<typeof createBatcher<string, string>>[0];
const defaults = { idOf: (key: string) => key, maxKeys: 10, maxCalls: 3, maxWaitMs: 50 };
/** A batcher whose calls stay in flight until the test ends them. */
function createHeldBatcher(options: Partial<Options> = {}) {
  const calls: { keys: readonly string[]; end: () => void }[] = [];
  const batcher = createBatcher<string, string>({
    ...defaults,
    ...options,
    ask: (batch, answer) =>
      new Promise((resolve) => {
        const batchKeys = batch.map(({ key }) => key);
        calls.push({
          keys: batchKeys,
          end: () => {
            batchKeys.forEach((key, i) => {
              answer(i, `value of ${key}`);
            });
            resolve();
          },
        });
      }),
  });
  const load = async (key: string, signal?: AbortSignal) => {
    const [value] = await batcher.load([key], { blocks: [], signal });
    if (value instanceof Error) throw value;
    return value;
  };
  return { load, calls, sizes: () => calls.map((call) => call.keys.length) };
}

describe("a batcher", () => {
  it("sends the waiting keys when the last call ends", async () => {
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

  it("requests a waiting key once for all callers, and a key in flight again", async () => {
    const { load, calls } = createHeldBatcher();
    const both = [load("a"), load("a")];
    await turn();
    const later = load("a");
    await turn();
    calls[0]!.end();
    expect(await Promise.all(both)).toEqual(["value of a", "value of a"]);
    await turn();
    expect(calls).toHaveLength(2);
    calls[1]!.end();
    expect(await later).toBe("value of a");
  });

  it("requests keys that are objects once if they have the same id", async () => {
    const asked: { id: number; text: string }[] = [];
    const batcher = createBatcher<(typeof asked)[number], string>({
      ...defaults,
      idOf: ({ id }) => String(id),
      ask(batch, answer) {
        batch.forEach(({ key }, i) => {
          asked.push(key);
          answer(i, key.text);
        });
        return Promise.resolve();
      },
    });
    const items = ["one", "one again", "two"].map((text, i) => ({ id: i >> 1, text }));
    expect(await batcher.load(items, NO_OWNER)).toEqual(["one", "one", "two"]);
    expect(asked).toHaveLength(2);
  });

  it("rejects a caller who leaves, drops keys without callers, and serves the other callers", async () => {
    const { load, calls } = createHeldBatcher({ maxCalls: 1 });
    void load("first");
    await turn();
    const [leaving, staying] = [new AbortController(), new AbortController()];
    const gone = load("gone", leaving.signal);
    const shared = [load("shared", leaving.signal), load("shared", staying.signal)] as const;
    await turn();
    leaving.abort(new Error("left"));
    await expect(gone).rejects.toThrow("left");
    await expect(shared[0]).rejects.toThrow("left");
    await expect(load("late", leaving.signal)).rejects.toThrow("left");
    calls[0]!.end();
    await turn();
    expect(calls[1]!.keys).toEqual(["shared"]);
    calls[1]!.end();
    expect(await shared[1]).toBe("value of shared");
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
      (await batcher.load(requested, NO_OWNER)).map((answer) =>
        answer instanceof Error ? answer.message : answer,
      );
    expect(await messages("a", "b", "c", "a")).toEqual([
      "value",
      "only b",
      "no answer for c",
      "value",
    ]);
    expect(await messages("a", "b")).toEqual(["all", "all"]);
    expect(await messages()).toEqual([]);
  });

  it("returns an answer while the other keys of its call wait for theirs", async () => {
    const end = Promise.withResolvers<undefined>();
    const batcher = createBatcher<string, string>({
      ...defaults,
      async ask(batch, answer) {
        answer(
          batch.findIndex(({ key }) => key === "early"),
          "value",
        );
        await end.promise;
        throw new Error("no others");
      },
    });
    const late = batcher.load(["late"], NO_OWNER);
    expect(await batcher.load(["early"], NO_OWNER)).toEqual(["value"]);
    end.resolve(undefined);
    expect(await late).toEqual([new Error("no others")]);
  });

  it("returns the available answers to a caller who leaves, and the abort reason for the other keys", async () => {
    const batcher = createBatcher<string, string>({
      ...defaults,
      maxKeys: 1,
      ask([entry], answer) {
        if (entry!.key === "never") return new Promise(() => undefined);
        answer(0, "value");
        return Promise.resolve();
      },
    });
    const leaving = new AbortController();
    const answers = batcher.load(["a", "never"], { blocks: [], signal: leaving.signal });
    await turn();
    leaving.abort(new Error("left"));
    expect(await answers).toEqual(["value", new Error("left")]);
  });
});
