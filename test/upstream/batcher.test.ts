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

/** A batcher whose calls wait until they are told to end. */
function held(options: Partial<Parameters<typeof createBatcher<string>>[0]> = {}) {
  const calls: { keys: readonly string[]; end: () => void }[] = [];
  const batcher = createBatcher<string>({
    maxKeys: 10,
    maxCalls: 3,
    maxWaitMs: 50,
    ...options,
    ask: (asked) =>
      new Promise((resolve) => {
        calls.push({
          keys: asked,
          end: () => {
            resolve(new Map(asked.map((key) => [key, `value of ${key}`])));
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
  it("asks for all that came in one turn of the event loop at once", async () => {
    const { load, sizes } = held();
    for (const key of keys(4)) void load(key);
    expect(sizes()).toEqual([]);
    await turn();
    expect(sizes()).toEqual([4]);
  });

  it("asks one after the other at once when they come one after the other", async () => {
    const { load, calls, sizes } = held();
    for (let i = 0; i < 3; i++) {
      const value = load(`k${i}`);
      await turn();
      expect(sizes()).toHaveLength(i + 1);
      calls[i]!.end();
      await value;
      await turn();
    }
  });

  it("lets keys that come while a call is under way gather on after its end", async () => {
    const { load, calls, sizes } = held();
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

  it("lets them leave with the end of the last call where it is told to", async () => {
    const { load, calls, sizes } = held({ sendAfterCalls: true });
    void load("first");
    await turn();
    for (const key of keys(4)) void load(key);
    await turn();
    expect(sizes()).toEqual([1]);
    calls[0]!.end();
    await turn();
    expect(sizes()).toEqual([1, 4]);
  });

  it("sends a full batch without waiting, but no more calls than are allowed at once", async () => {
    const { load, calls, sizes } = held();
    void load("first");
    await turn();
    for (const key of keys(45)) void load(key);
    await turn();
    expect(sizes()).toEqual([1, 10, 10]);
    calls[0]!.end();
    await turn();
    expect(sizes()).toEqual([1, 10, 10, 10]);
  });

  it("lets no key wait longer than 50 ms for company", async () => {
    const { load, sizes } = held();
    void load("first");
    await turn();
    void load("second");
    await turn();
    await vi.advanceTimersByTimeAsync(49);
    expect(sizes()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sizes()).toEqual([1, 1]);
  });

  it("asks a key that waits once for all its callers, and one under way anew, or not, as it is told", async () => {
    for (const joinInFlight of [false, true]) {
      const { load, calls } = held({ joinInFlight, sendAfterCalls: true });
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

  it("rejects a caller who gives up, asks for nobody who has, and goes on for the others", async () => {
    const { load, calls } = held({ maxCalls: 1, sendAfterCalls: true });
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

  it("asks anew for a caller who comes when all others have given up on the call under way", async () => {
    const { load, calls } = held({ joinInFlight: true, sendAfterCalls: true });
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

  it("refuses the newest beyond what may wait", async () => {
    const { load, calls } = held({
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

  it("refuses nobody while another call could be made", async () => {
    const { load, sizes } = held({ maxCalls: 2, maxWaiting: 1, refuse: () => new Error("full") });
    void load("first");
    await turn();
    void load("second");
    await turn();
    expect(sizes()).toEqual([1]);
    void load("third");
    await turn();
    expect(sizes()).toEqual([1, 2]);
  });

  it("never puts keys of different groups into one call", async () => {
    const { load, calls } = held({ sendAfterCalls: true, groupOf: (key) => key[0] });
    for (const key of ["a1", "b1", "a2", "b2"]) void load(key);
    await turn();
    calls[0]!.end();
    await turn();
    expect(calls.map((call) => call.keys)).toEqual([
      ["a1", "a2"],
      ["b1", "b2"],
    ]);
  });

  it("gives each key its own answer, and all of a failed call its failure", async () => {
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
    const messages = async (...asked: string[]) =>
      (await batcher.load(asked)).map((answer) => (answer instanceof Error ? answer.message : answer));
    expect(await messages("a", "b", "c", "a")).toEqual(["value", "only b", "no answer for c", "value"]);
    expect(await messages("a", "b")).toEqual(["all", "all"]);
    expect(await messages()).toEqual([]);
  });

  it("gives a caller who leaves what has been answered, and its reason for the rest", async () => {
    const ask = (asked: readonly string[]) =>
      asked.includes("never")
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
