import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createAccountLookup } from "../../src/social/account-lookup.ts";
import { nameOf, type SocialAccount } from "../../src/social/account.ts";
import type { SocialAnswers } from "../../src/social/api-client.ts";
import { NO_PROFILE } from "../../src/social/profile.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { SocialError } from "../../src/social/social-error.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets calls end or requests queue, and then the queue send at the end of the turn. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
const names = (count: number, prefix = "n") =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const accountOf = (handle: string): SocialAccount => ({ id: "7", handle, profile: NO_PROFILE });

/** A queue whose calls stay in flight until the test ends them. */
function createHeldQueue(
  options: Partial<Parameters<typeof createAccountLookup>[0]> & {
    turn?: () => Promise<unknown>;
  } = {},
) {
  const socialApiUrl = new URL("http://network");
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
    budget: createReadBudget({ socialReadsPerHour: 0, socialApiUrl }),
    socialConcurrency: 3,
    socialQueueMax: Infinity,
    socialTimeoutMs: 1_000_000,
    socialCacheSeconds: 0,
    socialApiUrl,
    ...options,
  });
  /** Resolves to the handle of the answer, or to what is wrong. */
  async function load(
    name: string,
    { addressBlock = "", signal = new AbortController().signal } = {},
  ): Promise<string> {
    const [answer] = await lookup.findByHandles([name], { addressBlock, signal });
    if (answer instanceof SocialError) return answer.failure.kind;
    return answer instanceof Error ? answer.message : answer!.handle;
  }
  return { load, calls, sizes: () => calls.map((call) => call.names.length) };
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
    const { load, calls } = createHeldQueue();
    const leaving = leavingCaller();
    const gone = load("a", { signal: leaving.signal });
    await turn();
    leaving.abort();
    expect(await gone).toBe("left");
    const late = load("a");
    await turn();
    calls[0]!.end();
    await turn();
    const joining = load("a");
    await turn();
    await vi.advanceTimersByTimeAsync(150);
    expect(calls).toHaveLength(2);
    calls[1]!.end();
    expect(await Promise.all([late, joining])).toEqual(["a", "a"]);
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
      expect(new Set(answers.slice(6))).toEqual(new Set(["queue-full"]));
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
  });
});

function leavingCaller() {
  const controller = new AbortController();
  const abort = () => {
    controller.abort(new Error("left"));
  };
  return { signal: controller.signal, abort };
}
