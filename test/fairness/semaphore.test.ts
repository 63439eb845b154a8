import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { createSemaphore, type Task } from "../../src/fairness/semaphore.ts";

/** Lets tasks end, and then others start at the end of the turn. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
const callerIn = (addressBlock: string, signal = new AbortController().signal) => ({
  addressBlock,
  signal,
});

/**
 * A semaphore whose tasks run until the test ends them. Records the names of tasks that start and
 * end.
 */
function createHeldSemaphore({ maxRunning = 1, maxWaiting = 10 } = {}) {
  const addTask = createSemaphore<string>({
    maxRunning,
    maxWaiting,
    refuse: () => new Error("full"),
  });
  const started = new Map<string, PromiseWithResolvers<string>>();
  const ended: string[] = [];
  const refused: string[] = [];
  const add = (name: string): Task<string> => {
    const run = () => {
      started.set(name, Promise.withResolvers());
      return started.get(name)!.promise;
    };
    return addTask(run, () => ended.push(name));
  };
  return {
    add,
    /** Adds a task for a caller in each of these blocks. */
    addFor(name: string, ...blocks: string[]): void {
      const task = add(name);
      for (const block of blocks) task.join(callerIn(block)).catch(() => refused.push(name));
    },
    async end(name: string, error?: Error): Promise<void> {
      if (error) started.get(name)!.reject(error);
      else started.get(name)!.resolve(`result of ${name}`);
      await turn();
    },
    started: () => [...started.keys()],
    ended,
    refused,
  };
}

it("starts tasks at the end of the event-loop turn, and gives all their callers the result or the error", async () => {
  const { add, end, started, ended } = createHeldSemaphore({ maxRunning: 2 });
  const [works, fails] = [add("works"), add("fails")];
  const results = [works, works, fails, fails].map((task) =>
    task.join(callerIn("a")).catch(String),
  );
  expect(started()).toEqual([]);
  await turn();
  expect(started()).toEqual(["works", "fails"]);
  expect(ended).toEqual([]);
  await end("works");
  await end("fails", new Error("broken"));
  expect(await Promise.all(results)).toEqual([
    ...Array<string>(2).fill("result of works"),
    ...Array<string>(2).fill("Error: broken"),
  ]);
  expect(ended).toEqual(["works", "fails"]);
});

it("starts a waiting task when another ends, even if that fails", async () => {
  const { addFor, end, started } = createHeldSemaphore();
  for (const name of ["one", "two", "three"]) addFor(name, "a");
  await turn();
  expect(started()).toEqual(["one"]);
  await end("one", new Error("broken"));
  expect(started()).toEqual(["one", "two"]);
  await end("two");
  expect(started()).toEqual(["one", "two", "three"]);
});

it("starts the oldest task of the blocks with the fewest running; a task counts for the blocks of all callers", async () => {
  const { addFor, end, started } = createHeldSemaphore({ maxRunning: 2 });
  for (const name of ["a0", "a1", "a2", "a3"]) addFor(name, "a");
  addFor("b0", "b");
  addFor("ab", "a", "b");
  addFor("c0", "c");
  await turn();
  expect(started()).toEqual(["a0", "b0"]);
  for (const name of ["a0", "b0", "a1", "ab"]) await end(name);
  expect(started()).toEqual(["a0", "b0", "a1", "ab", "c0", "a2"]);
});

it("refuses the newest tasks of the blocks that have the most when the queue is full", async () => {
  const { addFor, refused, ended } = createHeldSemaphore({ maxWaiting: 4 });
  for (const name of ["a0", "a1", "a2", "a3", "a4", "a5"]) addFor(name, "a");
  await turn();
  expect(refused).toEqual(["a5"]);
  for (const name of ["b0", "b1"]) addFor(name, "b");
  await turn();
  expect(refused).toEqual(["a5", "a3", "a4"]);
  expect(ended).toEqual(refused);
});

it("takes a task out of the queue when its last caller leaves, and not if another has joined", async () => {
  const { add, addFor, end, started, ended } = createHeldSemaphore({ maxWaiting: 2 });
  addFor("running", "a");
  await turn();
  const leaving = new AbortController();
  const [gone, shared] = [add("gone"), add("shared")];
  const left = [gone, shared].map((task) => task.join(callerIn("a", leaving.signal)));
  const stays = shared.join(callerIn("b"));
  await turn();
  leaving.abort(new Error("left"));
  for (const one of left) await expect(one).rejects.toThrow("left");
  expect(ended).toEqual(["gone"]);
  await expect(add("too late").join(callerIn("a", leaving.signal))).rejects.toThrow("left");
  addFor("next", "a");
  await end("running");
  await end("shared");
  expect(await stays).toBe("result of shared");
  expect(started()).toEqual(["running", "shared", "next"]);
});

it("lets a task go on that all its callers have left", async () => {
  const { add, end, started, ended } = createHeldSemaphore();
  const leaving = new AbortController();
  const task = add("running");
  const left = task.join(callerIn("a", leaving.signal));
  await turn();
  leaving.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  expect(ended).toEqual([]);
  await end("running");
  expect([started(), ended]).toEqual([["running"], ["running"]]);
});

it("forgets a block when its last caller leaves", async () => {
  const { add, addFor, end, started } = createHeldSemaphore({ maxRunning: 2 });
  addFor("a0", "a");
  addFor("x0", "x");
  await turn();
  const leaving = new AbortController();
  const a1 = add("a1");
  a1.join(callerIn("a")).catch(() => undefined);
  const left = a1.join(callerIn("c", leaving.signal));
  addFor("b0", "b");
  leaving.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  await end("x0");
  expect(started()).toEqual(["a0", "x0", "b0"]);
});

it("still counts a running task whose callers have left for the block of the last one", async () => {
  const { add, addFor, end, started } = createHeldSemaphore({ maxRunning: 2 });
  const leaving = new AbortController();
  const left = add("a0").join(callerIn("a", leaving.signal));
  addFor("x0", "x");
  await turn();
  leaving.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  addFor("a1", "a");
  addFor("b0", "b");
  await end("x0");
  expect(started()).toEqual(["a0", "x0", "b0"]);
});
