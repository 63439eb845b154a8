import { describe, expect, it, vi } from "vitest";
import { ContractError } from "../../src/contract/errors.ts";
import type { SocialAnswers } from "../../src/social/api-client.ts";
import { createDirectory } from "../../src/social/account-lookup.ts";

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
const neverById = () => Promise.reject(new Error("must not be asked by id"));
const codes = (answers: readonly unknown[]) =>
  answers.map((answer) => (answer instanceof ContractError ? answer.code : "found"));

/** Keys leave at the end of the turn of the event loop in which they came. */
const turn = () => new Promise((resolve) => setImmediate(resolve));
/** And when other calls are under way, after they have gathered. */
const gathered = () => new Promise((resolve) => setTimeout(resolve, 200));

/** A network that keeps every call until it is told to answer. */
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

describe("the directory", () => {
  it("asks for many handles in calls of up to 100, equal ones once, in whatever case", async () => {
    const { calls, client } = heldNetwork();
    const answers = createDirectory({ ...defaults, client }).findByHandles([...names(250), "NAME0", "Name1"]);
    await turn();
    expect(calls.map(({ keys }) => keys.length)).toEqual([100, 100]);
    await gathered();
    expect(calls.map(({ keys }) => keys.length)).toEqual([100, 100, 50]);
    calls.forEach(({ answer }) => {
      answer();
    });
    expect(await answers).toHaveLength(252);
    expect((await answers)[250]).toEqual({ id: "5", handle: "NAME0" });
  });

  it("sends a lone lookup at once, and gathers what comes while its calls are under way", async () => {
    const { calls, client } = heldNetwork();
    const directory = createDirectory({ ...defaults, concurrency: 1, client });
    const first = directory.findByHandles(["name0"]);
    await turn();
    const all = names(40).map((name) => directory.findByHandles([name]));
    await turn();
    expect(calls.map(({ keys }) => keys)).toEqual([["name0"]]);
    calls[0]!.answer();
    await first;
    await gathered();
    expect(calls).toHaveLength(2);
    expect(calls[1]!.keys).toEqual(names(40).slice(1));
    calls[1]!.answer();
    await Promise.all(all);
  });

  it("refuses what does not fit into the queue with SERVICE_BUSY, and serves what waits", async () => {
    const { calls, client } = heldNetwork();
    const directory = createDirectory({ ...defaults, concurrency: 1, queueMax: 2, client });
    const first = directory.findByHandles(["first"]);
    await turn();
    const waiting = directory.findByHandles(["second", "third"]);
    const [refused] = await directory.findByHandles(["fourth"]);
    expect(refused).toMatchObject({ code: "SERVICE_BUSY", retryAfterSeconds: 30 });
    const joined = directory.findByHandles(["THIRD"]);
    calls[0]!.answer();
    await first;
    await gathered();
    calls[1]!.answer();
    expect(codes([...(await waiting), ...(await joined)])).toEqual(["found", "found", "found"]);
    const again = directory.findByHandles(["fourth"]);
    await turn();
    calls[2]!.answer();
    expect(codes(await again)).toEqual(["found"]);
  });

  it("refuses of a batch only what does not fit", async () => {
    const { calls, client } = heldNetwork();
    const directory = createDirectory({ ...defaults, concurrency: 1, queueMax: 10, client });
    const answers = directory.findByHandles(names(120));
    await turn();
    calls[0]!.answer();
    await vi.waitFor(() => {
      expect(calls).toHaveLength(2);
    });
    calls[1]!.answer();
    expect(codes(await answers)).toEqual([
      ...names(110).map(() => "found"),
      ...names(10).map(() => "SERVICE_BUSY"),
    ]);
  });

  it("asks for no one who has given up while waiting, and frees the place", async () => {
    const { calls, client } = heldNetwork();
    const directory = createDirectory({ ...defaults, concurrency: 1, queueMax: 1, client });
    const first = directory.findByHandles(["first"]);
    await turn();
    const leaving = new AbortController();
    const left = directory.findByHandles(["left"], leaving.signal);
    await turn();
    leaving.abort(new Error("gone"));
    expect(await left).toEqual([new Error("gone")]);
    const next = directory.findByHandles(["next"]);
    await turn();
    calls[0]!.answer();
    await first;
    await gathered();
    calls[1]!.answer();
    expect(codes(await next)).toEqual(["found"]);
    expect(calls.map(({ keys }) => keys)).toEqual([["first"], ["next"]]);
  });

  it("believes an account for the configured time, no such account for 60 s at most, a failure never", async () => {
    vi.useFakeTimers();
    vi.advanceTimersByTime(1);
    try {
      const asked = vi.fn((keys: readonly string[]) => {
        if (keys[0] === "broken") return Promise.reject(new ContractError("SOCIAL_API_UNAVAILABLE"));
        if (keys[0] === "nobody")
          return Promise.resolve(new Map([["nobody", new ContractError("SOCIAL_NOT_FOUND")]]));
        return Promise.resolve(answerAll(keys));
      });
      const directory = createDirectory({
        ...defaults,
        client: { findByHandles: asked, findByIds: neverById },
      });
      const askFor = async (name: string) => {
        asked.mockClear();
        await directory.findByHandles([name]);
        return asked.mock.calls.length;
      };
      expect([await askFor("known"), await askFor("KNOWN")]).toEqual([1, 0]);
      expect([await askFor("nobody"), await askFor("nobody")]).toEqual([1, 0]);
      expect([await askFor("broken"), await askFor("broken")]).toEqual([1, 1]);
      await vi.advanceTimersByTimeAsync(60_001);
      expect([await askFor("known"), await askFor("nobody")]).toEqual([0, 1]);
      await vi.advanceTimersByTimeAsync(240_000);
      expect(await askFor("known")).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it("believes nothing when it is told so", async () => {
    const asked = vi.fn((keys: readonly string[]) => Promise.resolve(answerAll(keys)));
    const client = { findByHandles: asked, findByIds: neverById };
    const directory = createDirectory({ ...defaults, cacheSeconds: 0, client });
    await directory.findByHandles(["known"]);
    await directory.findByHandles(["known"]);
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it("gives the error of a call to all who wait for it, and goes on", async () => {
    const { calls, client } = heldNetwork();
    const directory = createDirectory({ ...defaults, client });
    const answers = directory.findByHandles(["one", "two"]);
    await turn();
    calls[0]!.fail(new ContractError("SOCIAL_API_UNAVAILABLE"));
    expect(codes(await answers)).toEqual(["SOCIAL_API_UNAVAILABLE", "SOCIAL_API_UNAVAILABLE"]);
    const again = directory.findByHandles(["one"]);
    await turn();
    calls[1]!.answer();
    expect(codes(await again)).toEqual(["found"]);
  });
});
