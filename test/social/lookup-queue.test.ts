import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { nameOf, toHandleKey, type SocialAccount } from "../../src/social/account.ts";
import { createLookupQueue, type Queuer } from "../../src/social/lookup-queue.ts";
import { NO_PROFILE } from "../../src/social/profile.ts";
import { addMs, monotonicNow, NEVER } from "../../src/time/monotonic.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets calls end, and then the queue send at the end of the turn. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
const names = (count: number, prefix = "n") =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const accountOf = (handle: string): SocialAccount => ({ id: "7", handle, profile: NO_PROFILE });

/** A queue whose calls stay in flight until the test ends them. */
function createHeldQueue(options: Partial<Parameters<typeof createLookupQueue>[0]> = {}) {
  const calls: { names: readonly string[]; end: () => void }[] = [];
  const queue = createLookupQueue({
    ask: (keys) =>
      new Promise((resolve) => {
        calls.push({
          names: keys.map(nameOf),
          end: () => {
            resolve(new Map(keys.map((key) => [key, accountOf(nameOf(key))])));
          },
        });
      }),
    turn: () => undefined,
    socialConcurrency: 3,
    socialQueueMax: Infinity,
    refuse: () => new Error("refused"),
    ...options,
  });
  /** Resolves to the handle of the answer, or to the message of the error. */
  async function load(
    name: string,
    { addressBlock = "", ...queuer }: Partial<Queuer> & { addressBlock?: string } = {},
  ): Promise<string> {
    const everyone = { signal: new AbortController().signal, sendBefore: NEVER };
    const owner = { blocks: [addressBlock], ...everyone, ...queuer };
    const [answer] = (await queue.load([toHandleKey(name)], owner)) as [SocialAccount | Error];
    return answer instanceof Error ? answer.message : answer.handle;
  }
  const isPending = (name: string) => queue.isPending(toHandleKey(name));
  return { load, calls, isPending, sizes: () => calls.map((call) => call.names.length) };
}

describe("the queue of lookups", () => {
  it("asks once for a name that waits or is in flight", async () => {
    const { load, calls } = createHeldQueue();
    const both = [load("a"), load("a")];
    await turn();
    const later = load("a");
    await turn();
    calls[0]!.end();
    expect(await Promise.all([...both, later])).toEqual(["a", "a", "a"]);
    await turn();
    expect(calls).toHaveLength(1);
  });

  it("asks again for a name when all callers of the call in flight have left, and keeps the calls apart", async () => {
    const { load, calls, isPending } = createHeldQueue();
    const leaving = leavingCaller();
    const gone = load("a", { signal: leaving.signal });
    await turn();
    leaving.abort();
    expect(await gone).toBe("left");
    const late = load("a");
    calls[0]!.end();
    await turn();
    expect(isPending("a")).toBe(true);
    await vi.advanceTimersByTimeAsync(150);
    expect(calls).toHaveLength(2);
    calls[1]!.end();
    expect(await late).toBe("a");
  });

  describe("when more names wait than fit", () => {
    const loadFor = (
      load: ReturnType<typeof createHeldQueue>["load"],
      addressBlock: string,
      count: number,
    ) => Promise.all(names(count, addressBlock).map((name) => load(name, { addressBlock })));

    it("puts an equal number of names of each address block into the call, the oldest first", async () => {
      const { load, calls } = createHeldQueue({ socialConcurrency: 1 });
      void load("first");
      await turn();
      void loadFor(load, "a", 300);
      void loadFor(load, "b", 2);
      void loadFor(load, "c", 300);
      await turn();
      calls[0]!.end();
      await turn();
      expect(calls[1]!.names.slice(0, 8)).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "c2"]);
      expect(calls[1]!.names.slice(-2)).toEqual(["a48", "c48"]);
    });

    it("refuses the newest names of the blocks with the most names when the queue is full", async () => {
      const { load, calls } = createHeldQueue({ socialConcurrency: 1, socialQueueMax: 10 });
      void load("first");
      await turn();
      const many = loadFor(load, "a", 100);
      await turn();
      const few = loadFor(load, "b", 4);
      await turn();
      calls[0]!.end();
      await turn();
      await vi.advanceTimersByTimeAsync(150);
      calls[1]!.end();
      expect(await few).toEqual(names(4, "b"));
      const answers = await many;
      expect(answers.slice(0, 6)).toEqual(names(6, "a"));
      expect(new Set(answers.slice(6))).toEqual(new Set(["refused"]));
    });

    it("serves a name as early as any of its blocks would get it", async () => {
      const { load, calls } = createHeldQueue({ socialConcurrency: 1 });
      void load("first");
      await turn();
      void loadFor(load, "a", 300);
      void load("a299", { addressBlock: "b" });
      await turn();
      calls[0]!.end();
      await turn();
      expect(calls[1]!.names.slice(0, 4)).toEqual(["a0", "a299", "a1", "a2"]);
    });
  });

  describe("with turns", () => {
    /** A queue whose turns come when the test says so. */
    function createPacedQueue() {
      const turns: (() => void)[] = [];
      const takeTurn = () => new Promise<void>((resolve) => turns.push(resolve));
      return { ...createHeldQueue({ turn: takeTurn }), turns };
    }

    it("waits for the turn of each call, and sends all names that have gathered by then", async () => {
      const { load, calls, turns, sizes } = createPacedQueue();
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

    it("keeps an unused turn for the next name", async () => {
      const { load, turns, sizes } = createPacedQueue();
      const leaving = leavingCaller();
      const gone = load("gone", { signal: leaving.signal });
      await turn();
      leaving.abort();
      expect(await gone).toBe("left");
      turns[0]!();
      await turn();
      void load("next");
      await turn();
      expect([sizes(), turns.length]).toEqual([[1], 1]);
    });

    it("refuses names whose time is up instead of sending them", async () => {
      const { load, calls, turns } = createPacedQueue();
      const late = load("late", { sendBefore: addMs(monotonicNow(), 100) });
      void load("in time", { sendBefore: addMs(monotonicNow(), 300) });
      const both = [100, 300].map((ms) => load("both", { sendBefore: addMs(monotonicNow(), ms) }));
      await turn();
      await vi.advanceTimersByTimeAsync(200);
      turns[0]!();
      expect(await late).toBe("refused");
      expect(calls[0]!.names).toEqual(["in time", "both"]);
      calls[0]!.end();
      expect(await Promise.all(both)).toEqual(["both", "both"]);
    });

    it("refuses a name when its caller leaves because its time is up, before its turn", async () => {
      const { load } = createPacedQueue();
      const { signal, abort } = leavingCaller();
      const both = [50, 200].map((ms) =>
        load(`sent before ${ms}`, { signal, sendBefore: addMs(monotonicNow(), ms) }),
      );
      await turn();
      await vi.advanceTimersByTimeAsync(100);
      abort();
      expect(await Promise.all(both)).toEqual(["refused", "left"]);
    });
  });
});

function leavingCaller() {
  const controller = new AbortController();
  const abort = () => {
    controller.abort(new Error("left"));
  };
  return { signal: controller.signal, abort };
}
