import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { createSemaphore } from "../../src/upstream/semaphore.ts";

const stays = new AbortController().signal;

/** Lets tasks end, and then others start at the end of the turn. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** A semaphore whose tasks run until the test ends them. Records which tasks were started and refused, in order. */
function createHeldSemaphore({ maxRunning = 1, maxWaiting = 10 } = {}) {
  const run = createSemaphore({ maxRunning, maxWaiting, refuse: () => new Error("full") });
  const tasks = new Map<string, PromiseWithResolvers<string>>();
  const refused: string[] = [];
  const add = (name: string, blocks: readonly string[] = ["a"], signal = stays) => {
    const task = () => {
      tasks.set(name, Promise.withResolvers());
      return tasks.get(name)!.promise;
    };
    const result = run(task, { blocks: () => blocks, signal });
    result.catch(() => refused.push(name));
    return result;
  };
  const end = async (name: string) => {
    tasks.get(name)!.resolve(`result of ${name}`);
    await turn();
  };
  return { add, end, tasks, started: () => [...tasks.keys()], refused };
}

it("a task gets a turn at the end of the event-loop turn, and its caller gets its result or error", async () => {
  const { add, end, tasks, started } = createHeldSemaphore({ maxRunning: 2 });
  const [one, two] = [add("one"), add("two")];
  expect(started()).toEqual([]);
  await turn();
  expect(started()).toEqual(["one", "two"]);
  await end("one");
  expect(await one).toBe("result of one");
  tasks.get("two")!.reject(new Error("fails"));
  await expect(two).rejects.toThrow("fails");
});

it("a task waits while as many as may run do, and starts when one of them ends, even if that fails", async () => {
  const { add, end, tasks, started } = createHeldSemaphore();
  for (const name of ["one", "two", "three"]) void add(name);
  await turn();
  expect(started()).toEqual(["one"]);
  tasks.get("one")!.reject(new Error("fails"));
  await turn();
  expect(started()).toEqual(["one", "two"]);
  await end("two");
  expect(started()).toEqual(["one", "two", "three"]);
});

it("the next task is the oldest of the blocks that run the fewest, and counts for all its blocks", async () => {
  const { add, end, started } = createHeldSemaphore({ maxRunning: 2 });
  for (const name of ["a0", "a1", "a2", "a3"]) void add(name);
  void add("b0", ["b"]);
  void add("ab", ["a", "b"]);
  void add("c0", ["c"]);
  await turn();
  expect(started()).toEqual(["a0", "b0"]);
  for (const name of ["a0", "b0", "a1", "ab"]) await end(name);
  expect(started()).toEqual(["a0", "b0", "a1", "ab", "c0", "a2"]);
});

it("a full queue refuses the newest tasks of the blocks that have the most", async () => {
  const { add, refused } = createHeldSemaphore({ maxWaiting: 4 });
  for (const name of ["a0", "a1", "a2", "a3", "a4", "a5"]) void add(name);
  await turn();
  void add("b0", ["b"]);
  void add("b1", ["b"]);
  await turn();
  expect(refused).toEqual(["a5", "a3", "a4"]);
});

it("a task whose signal aborts leaves the queue and frees its place, but a running one continues", async () => {
  const { add, end, started } = createHeldSemaphore({ maxWaiting: 1 });
  const leaving = new AbortController();
  const running = add("running", ["a"], leaving.signal);
  await turn();
  const gone = add("gone", ["a"], leaving.signal);
  await turn();
  leaving.abort(new Error("left"));
  await expect(gone).rejects.toThrow("left");
  await expect(add("too late", ["a"], leaving.signal)).rejects.toThrow("left");
  void add("next");
  await end("running");
  expect(await running).toBe("result of running");
  expect(started()).toEqual(["running", "next"]);
});
