import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBatcher } from "../../src/upstream/batcher.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const turn = () => new Promise((resolve) => setImmediate(resolve));
const keys = (count: number, prefix = "k") => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

/** A batcher whose calls stay in flight until the test ends them. */
function createHeldBatcher(options: Partial<Parameters<typeof createBatcher<string>>[0]> = {}) {
  const calls: { keys: readonly string[]; end: () => void }[] = [];
  const batcher = createBatcher<string>({
    maxKeys: 10,
    maxCalls: 3,
    maxWaitMs: 50,
    ...options,
    ask: (batch) =>
      new Promise((resolve) => {
        calls.push({
          keys: batch,
          end: () => {
            resolve(new Map(batch.map((key) => [key, `value of ${key}`])));
          },
        });
      }),
  });
  const load = async (key: string, signal?: AbortSignal) => {
    const [value] = await batcher.load([key], signal);
    if (value instanceof Error) throw value;
    return value;
  };
  return { load, calls, sizes: () => calls.map((call) => call.keys.length) };
}

describe("a batcher", () => {
  it("requests all keys of one turn of the event loop in one call", async () => {
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

  it("keeps batching keys that arrive during a call, even after that call ends", async () => {
    const { load, calls, sizes } = createHeldBatcher();
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

  it("sends the batch when the last call ends, with sendAfterCalls", async () => {
    const { load, calls, sizes } = createHeldBatcher({ sendAfterCalls: true });
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

  it("requests a waiting key once for all callers, and a key in flight again unless joinInFlight is set", async () => {
    for (const joinInFlight of [false, true]) {
      const { load, calls } = createHeldBatcher({ joinInFlight, sendAfterCalls: true });
      const [one, two] = [load("a"), load("a")];
      await turn();
      const three = load("a");
      await turn();
      calls[0]!.end();
      expect(await Promise.all([one, two])).toEqual(["value of a", "value of a"]);
      await turn();
      expect(calls).toHaveLength(joinInFlight ? 1 : 2);
      calls.at(-1)!.end();
      expect(await three).toBe("value of a");
    }
  });

  it("rejects a caller who leaves, drops keys without callers, and serves the other callers", async () => {
    const { load, calls } = createHeldBatcher({ maxCalls: 1, sendAfterCalls: true });
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

  it("requests a key again when all callers of the call in flight have left", async () => {
    const { load, calls } = createHeldBatcher({ joinInFlight: true, sendAfterCalls: true });
    const leaving = new AbortController();
    const gone = load("a", leaving.signal);
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
      maxWaiting: 2,
      sendAfterCalls: true,
      refuse: () => new Error("full"),
    });
    void load("first");
    await turn();
    const waiting = keys(4).map((key) => load(key).catch((error: unknown) => (error as Error).message));
    await turn();
    calls[0]!.end();
    await turn();
    calls[1]!.end();
    expect(await Promise.all(waiting)).toEqual(["value of k0", "value of k1", "full", "full"]);
  });

  it("refuses no key while another call can be made", async () => {
    const { load, sizes } = createHeldBatcher({
      maxCalls: 2,
      maxWaiting: 1,
      refuse: () => new Error("full"),
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
    const { load, calls } = createHeldBatcher({ sendAfterCalls: true, groupOf: (key) => key[0] });
    for (const key of ["a1", "b1", "a2", "b2"]) void load(key);
    await turn();
    calls[0]!.end();
    await turn();
    expect(calls.map((call) => call.keys)).toEqual([
      ["a1", "a2"],
      ["b1", "b2"],
    ]);
  });

  it("returns each key's own answer, and the error of a failed call for all its keys", async () => {
    const answers = [
      Promise.resolve(
        new Map<string, string | Error>([
          ["a", "value"],
          ["b", new Error("only b")],
        ]),
      ),
      Promise.reject(new Error("all")),
    ];
    const batcher = createBatcher<string>({
      maxKeys: 10,
      maxCalls: 1,
      maxWaitMs: 50,
      ask: () => answers.shift()!,
    });
    const messages = async (...requested: string[]) =>
      (await batcher.load(requested)).map((answer) => (answer instanceof Error ? answer.message : answer));
    expect(await messages("a", "b", "c", "a")).toEqual(["value", "only b", "no answer for c", "value"]);
    expect(await messages("a", "b")).toEqual(["all", "all"]);
    expect(await messages()).toEqual([]);
  });

  it("returns the available answers to a caller who leaves, and the abort reason for the other keys", async () => {
    const ask = (batch: readonly string[]) =>
      batch.includes("never")
        ? new Promise<never>(() => undefined)
        : Promise.resolve(new Map([["a", "value"]]));
    const batcher = createBatcher<string>({ maxKeys: 1, maxCalls: 2, maxWaitMs: 50, ask });
    const leaving = new AbortController();
    const answers = batcher.load(["a", "never"], leaving.signal);
    await turn();
    leaving.abort(new Error("left"));
    expect(await answers).toEqual(["value", new Error("left")]);
    expect(await batcher.load(["a"], leaving.signal)).toEqual([new Error("left")]);
  });
});
