import { describe, expect, it, vi } from "vitest";
import type { SocialAnswers } from "../../src/social/api-client.ts";
import { createAccountLookup } from "../../src/social/account-lookup.ts";
import { SocialError } from "../../src/social/social-error.ts";

const defaults = {
  concurrency: 4,
  queueMax: 1000,
  timeoutMs: 5_000,
  cacheSeconds: 300,
  apiUrl: new URL("http://network"),
};
const names = (count: number, prefix = "name") => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const answerAll = (keys: readonly string[]): SocialAnswers =>
  new Map(keys.map((key) => [key, { id: String(key.length), handle: key.toUpperCase() }]));
const neverById = () => Promise.reject(new Error("must not be called by id"));
const results = (answers: readonly unknown[]) =>
  answers.map((answer) => (answer instanceof SocialError ? answer.failure.kind : "found"));

/** Resolves after one turn of the event loop: the batcher then sends the keys of that turn. */
const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Resolves after the time for which the batcher holds keys while other calls are in flight. */
const batchSent = () => new Promise((resolve) => setTimeout(resolve, 200));

/** A network that keeps every call open until the test answers it. */
function heldNetwork() {
  const calls: {
    keys: readonly string[];
    answer: (answers?: SocialAnswers) => void;
    fail: (error: Error) => void;
  }[] = [];
  const findByHandles = (keys: readonly string[]) =>
    new Promise<SocialAnswers>((resolve, reject) => {
      calls.push({
        keys,
        answer: (answers = answerAll(keys)) => {
          resolve(answers);
        },
        fail: reject,
      });
    });
  return { calls, client: { findByHandles, findByIds: neverById } };
}

describe("the account lookup", () => {
  it("requests handles in calls of up to 100, and equal handles once, ignoring case", async () => {
    const { calls, client } = heldNetwork();
    const answers = createAccountLookup({ ...defaults, client }).findByHandles([
      ...names(250),
      "NAME0",
      "Name1",
    ]);
    await turn();
    expect(calls.map(({ keys }) => keys.length)).toEqual([100, 100]);
    await batchSent();
    expect(calls.map(({ keys }) => keys.length)).toEqual([100, 100, 50]);
    calls.forEach(({ answer }) => {
      answer();
    });
    expect(await answers).toHaveLength(252);
    expect((await answers)[250]).toEqual({ id: "5", handle: "NAME0" });
  });

  it("sends a single lookup at once, and batches keys while its calls are in flight", async () => {
    const { calls, client } = heldNetwork();
    const lookup = createAccountLookup({ ...defaults, concurrency: 1, client });
    const first = lookup.findByHandles(["name0"]);
    await turn();
    const all = names(40).map((name) => lookup.findByHandles([name]));
    await turn();
    expect(calls.map(({ keys }) => keys)).toEqual([["name0"]]);
    calls[0]!.answer();
    await first;
    await batchSent();
    expect(calls).toHaveLength(2);
    expect(calls[1]!.keys).toEqual(names(40).slice(1));
    calls[1]!.answer();
    await Promise.all(all);
  });

  it("refuses keys that do not fit into the queue, and serves the queued keys", async () => {
    const { calls, client } = heldNetwork();
    const lookup = createAccountLookup({ ...defaults, concurrency: 1, queueMax: 2, client });
    const first = lookup.findByHandles(["first"]);
    await turn();
    const waiting = lookup.findByHandles(["second", "third"]);
    const [refused] = await lookup.findByHandles(["fourth"]);
    expect(refused).toMatchObject({ failure: { kind: "queue-full" } });
    const joined = lookup.findByHandles(["THIRD"]);
    calls[0]!.answer();
    await first;
    await batchSent();
    calls[1]!.answer();
    expect(results([...(await waiting), ...(await joined)])).toEqual(["found", "found", "found"]);
    const again = lookup.findByHandles(["fourth"]);
    await turn();
    calls[2]!.answer();
    expect(results(await again)).toEqual(["found"]);
  });

  it("refuses only the keys of a batch that do not fit", async () => {
    const { calls, client } = heldNetwork();
    const lookup = createAccountLookup({ ...defaults, concurrency: 1, queueMax: 10, client });
    const answers = lookup.findByHandles(names(120));
    await turn();
    calls[0]!.answer();
    await vi.waitFor(() => {
      expect(calls).toHaveLength(2);
    });
    calls[1]!.answer();
    expect(results(await answers)).toEqual([
      ...names(110).map(() => "found"),
      ...names(10).map(() => "queue-full"),
    ]);
  });

  it("removes the queued key of a caller who leaves, and frees its place", async () => {
    const { calls, client } = heldNetwork();
    const lookup = createAccountLookup({ ...defaults, concurrency: 1, queueMax: 1, client });
    const first = lookup.findByHandles(["first"]);
    await turn();
    const leaving = new AbortController();
    const left = lookup.findByHandles(["left"], leaving.signal);
    await turn();
    leaving.abort(new Error("gone"));
    expect(await left).toEqual([new Error("gone")]);
    const next = lookup.findByHandles(["next"]);
    await turn();
    calls[0]!.answer();
    await first;
    await batchSent();
    calls[1]!.answer();
    expect(results(await next)).toEqual(["found"]);
    expect(calls.map(({ keys }) => keys)).toEqual([["first"], ["next"]]);
  });

  it("caches an account for the configured time and not-found for at most 60 s, and does not cache failures", async () => {
    vi.useFakeTimers();
    vi.advanceTimersByTime(1);
    try {
      const findByHandles = vi.fn((keys: readonly string[]) => {
        if (keys[0] === "broken") return Promise.reject(new SocialError({ kind: "unreachable" }));
        if (keys[0] === "nobody")
          return Promise.resolve(new Map([["nobody", new SocialError({ kind: "not-found" })]]));
        return Promise.resolve(answerAll(keys));
      });
      const lookup = createAccountLookup({
        ...defaults,
        client: { findByHandles, findByIds: neverById },
      });
      const countCalls = async (name: string) => {
        findByHandles.mockClear();
        await lookup.findByHandles([name]);
        return findByHandles.mock.calls.length;
      };
      expect([await countCalls("known"), await countCalls("KNOWN")]).toEqual([1, 0]);
      expect([await countCalls("nobody"), await countCalls("nobody")]).toEqual([1, 0]);
      expect([await countCalls("broken"), await countCalls("broken")]).toEqual([1, 1]);
      await vi.advanceTimersByTimeAsync(60_001);
      expect([await countCalls("known"), await countCalls("nobody")]).toEqual([0, 1]);
      await vi.advanceTimersByTimeAsync(240_000);
      expect(await countCalls("known")).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it("caches nothing when the configured time is 0 s", async () => {
    const findByHandles = vi.fn((keys: readonly string[]) => Promise.resolve(answerAll(keys)));
    const client = { findByHandles, findByIds: neverById };
    const lookup = createAccountLookup({ ...defaults, cacheSeconds: 0, client });
    await lookup.findByHandles(["known"]);
    await lookup.findByHandles(["known"]);
    expect(findByHandles).toHaveBeenCalledTimes(2);
  });

  it("returns the error of a call to all its callers, and makes the next call", async () => {
    const { calls, client } = heldNetwork();
    const lookup = createAccountLookup({ ...defaults, client });
    const answers = lookup.findByHandles(["one", "two"]);
    await turn();
    calls[0]!.fail(new SocialError({ kind: "unreachable" }));
    expect(results(await answers)).toEqual(["unreachable", "unreachable"]);
    const again = lookup.findByHandles(["one"]);
    await turn();
    calls[1]!.answer();
    expect(results(await again)).toEqual(["found"]);
  });
});
